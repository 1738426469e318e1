package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"rollcall.dev/rollcall/clusters"
)

// connect fills a session with clients. It sends no request.
func (o *Observer) connect(c clusters.Cluster, s *session) error {
	if c.Kubeconfig == nil {
		return &answerError{errNoKubeconfig}
	}
	config, err := loadKubeconfig(c.Kubeconfig)
	if err != nil {
		return &answerError{err}
	}
	s.kubectl = kubectlFlags(c.Kubeconfig)
	s.host, s.credential, s.route = hostOf(config.Host), credentialOf(config), routeOf(config)
	if config.ExecProvider != nil {
		s.at("starting the exec plugin")
		s.plugin = config.ExecProvider.Command
		s.phase.Store(askingPlugin)
		if err := o.guardPlugin(s.limit, config.ExecProvider); err != nil {
			return &answerError{err}
		}
		s.guard = config.ExecProvider.Command
	}
	o.harden(config, s)
	if err := o.clients(config, s); err != nil {
		return &answerError{fmt.Errorf("making a client for %q: %w", s.host, err)}
	}
	return nil
}

// harden sets what client-go leaves open: no waiting for ever, no throttle of
// its own, protobuf where the server has it, and bounds on what is read.
func (o *Observer) harden(config *rest.Config, s *session) {
	o.once.Do(func() { o.codecs = serializer.NewCodecFactory(newScheme()) })
	s.codecs = o.codecs
	s.pageSize, s.maxPages = cmp.Or(o.PageSize, 500), cmp.Or(o.MaxPages, 4000)

	config.Timeout = s.limit + time.Second // the context ends first and tells how far a request came
	config.QPS = -1
	config.UserAgent = "rollcall"
	config.WarningHandler = rest.NoWarnings{}
	config.NegotiatedSerializer = o.codecs.WithoutConversion()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	budget := &budget{limit: cmp.Or(o.TotalLimit, 1<<30)}
	if s.following {
		config.Timeout, budget.limit = 0, math.MaxInt64
	}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return &bounded{base: rt, session: s, perAnswer: cmp.Or(o.BodyLimit, 256<<20), budget: budget}
	})
}

// clients makes one REST client a group; they share their connections.
func (o *Observer) clients(config *rest.Config, s *session) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	// A redirect would carry the credentials to another host.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.http = client
	s.groups = map[string]rest.Interface{}
	for _, gv := range []schema.GroupVersion{
		corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion, authenticationv1.SchemeGroupVersion,
		coordinationv1.SchemeGroupVersion, schedulingv1.SchemeGroupVersion,
	} {
		c := rest.CopyConfig(config)
		c.GroupVersion, c.APIPath = &gv, "/apis"
		if gv.Group == "" {
			c.APIPath = "/api"
		}
		if s.groups[gv.Group], err = rest.RESTClientForConfigAndClient(c, client); err != nil {
			return err
		}
	}
	return nil
}

// newScheme knows the groups that are read and no other: that keeps the
// hundreds of packages of client-go's typed clients out of the product.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, authorizationv1.AddToScheme, authenticationv1.AddToScheme, coordinationv1.AddToScheme,
		schedulingv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two types of one name: a mistake of this program
		}
	}
	return scheme
}

// guardPlugin has an exec plugin started by our guard, which ends it when the
// observation's time is over. The time is told as a rounded duration: client-go
// keeps plugins by their arguments for ever, so that these must be the same at
// every observation. Many clusters are read at once, so none may ask at the
// terminal.
func (o *Observer) guardPlugin(limit time.Duration, p *api.ExecConfig) error {
	command, err := exec.LookPath(p.Command)
	if err != nil {
		hint := ""
		if p.InstallHint != "" {
			hint = ": " + strings.TrimSpace(p.InstallHint)
		}
		if e, ok := errors.AsType[*exec.Error](err); ok {
			err = e.Err
		}
		return fmt.Errorf("looking for exec plugin %q: %w%s", p.Command, err, hint)
	}
	guard, err := o.guard()
	if err != nil {
		return err
	}
	const grain = 100 * time.Millisecond
	p.Args = append([]string{GuardCommand, ((limit + grain - 1).Truncate(grain)).String(), "--", command}, p.Args...)
	p.Command = guard
	p.StdinUnavailable, p.StdinUnavailableMessage = true, "log in with kubectl first"
	return nil
}

// quiet keeps client-go from writing to the standard error by itself: what
// went wrong is in the error.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

func (s *session) close() { utilnet.CloseIdleConnectionsFor(s.http.Transport) }

// hostOf is a server's host and port without a user's name and password.
func hostOf(server string) string {
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		return u.Host
	}
	return server[strings.LastIndexByte(server, '@')+1:]
}

func kubectlFlags(k *clusters.Kubeconfig) string {
	flags := ""
	if len(k.Paths) == 1 {
		flags += " --kubeconfig " + k.Paths[0]
	}
	if k.Context != "" {
		flags += " --context " + k.Context
	}
	return flags
}
