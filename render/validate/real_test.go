package validate

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"rollcall.dev/rollcall/clusters/kubetest"
)

// unseen are faults that a real API server finds and this package does not.
var unseen = map[string]string{}

// A real API server of 1.37 must agree about every mutation: what it takes by a
// strict dry run we call no error, and what it refuses we find.
func TestRealServer(t *testing.T) {
	cp := kubetest.Start(t, kubetest.Options{})
	config := cp.Client(t)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range mutations() {
		t.Run(name, func(t *testing.T) {
			u := mutated(t, m)
			body, err := json.Marshal(u.Object)
			if err != nil {
				t.Fatal(err)
			}
			url := config.Host + "/apis/apps/v1/namespaces/default/daemonsets?dryRun=All&fieldValidation=Strict"
			res, err := client.Post(url, "application/json", strings.NewReader(string(body)))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			said, _ := io.ReadAll(res.Body)
			got, _ := judge(u)
			accepted := res.StatusCode == http.StatusCreated
			switch {
			case accepted && len(got) > 0:
				t.Errorf("the server takes it, and we say %q", got)
			case !accepted && len(got) == 0 && unseen[name] == "":
				t.Errorf("we say nothing, and the server says %s", said)
			case (accepted || len(got) > 0) && unseen[name] != "":
				t.Errorf("it is listed as unseen")
			}
		})
	}
}
