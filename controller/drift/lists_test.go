package drift

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"rollcall.dev/rollcall/clusters/kubetest"
)

// schema is what matters here of a schema of the API's OpenAPI document.
type schema struct {
	Properties map[string]struct {
		Type     string   `json:"type"`
		ListType string   `json:"x-kubernetes-list-type"`
		Keys     []string `json:"x-kubernetes-list-map-keys"`
	} `json:"properties"`
}

// What this package says of lists is what a real API server does.
func TestListsAgainstServer(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{})
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]schema{}
	for _, gv := range []string{"api/v1", "apis/apps/v1", "apis/rbac.authorization.k8s.io/v1", "apis/networking.k8s.io/v1", "apis/policy/v1", "apis/scheduling.k8s.io/v1", "apis/admissionregistration.k8s.io/v1", "apis/storage.k8s.io/v1", "apis/node.k8s.io/v1", "apis/batch/v1", "apis/autoscaling/v2"} {
		res, err := client.Get(config.Host + "/openapi/v3/" + gv)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Components struct {
				Schemas map[string]schema `json:"schemas"`
			} `json:"components"`
		}
		err = json.NewDecoder(res.Body).Decode(&doc)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(schemas, doc.Components.Schemas)
	}
	seen := map[string]bool{}
	for name, s := range schemas {
		short := name[strings.LastIndexByte(name, '.')+1:]
		for field, p := range s.Properties {
			at := short + "." + field
			have, told := lists[at]
			if told {
				seen[at] = true
			}
			if p.Type != "array" || strings.HasSuffix(short, "Status") || strings.HasSuffix(short, "List") || name != "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" && field == "conditions" {
				continue
			}
			switch p.ListType {
			case "map":
				if !slices.Equal(slices.Sorted(slices.Values(p.Keys)), slices.Sorted(slices.Values(have.keys))) {
					t.Errorf("%s (%s) is keyed by %v, here by %v", at, name, p.Keys, have.keys)
				}
			case "set":
				if !have.set {
					t.Errorf("%s (%s) is a set", at, name)
				}
			default:
				if have.set || len(have.keys) > 0 {
					t.Errorf("%s (%s) is replaced as a whole, here it is keyed by %v or a set", at, name, have.keys)
				}
			}
		}
	}
	for at := range lists {
		if !seen[at] {
			t.Errorf("%s is in no schema", at)
		}
	}
}
