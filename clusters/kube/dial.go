package kube

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/hub"
)

// guardDial has every address checked after its name was resolved, before
// anything is sent: a name in a Secret may lead anywhere. Where a proxy of our
// own environment stands between, it is the proxy that connects.
func guardDial(config *rest.Config, in *clusters.Inline) error {
	server, err := url.Parse(config.Host)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of %s: its server is no URL", in.Origin)
	}
	if config.Proxy == nil {
		// Named as it would be by default: client-go keeps no transport whose
		// proxy is set, and would keep one for each dialer for ever.
		config.Proxy = http.ProxyFromEnvironment
		if proxy, err := config.Proxy(&http.Request{URL: server}); err != nil || proxy != nil {
			return nil
		}
	}
	dialer := &net.Dialer{
		Timeout: 30 * time.Second, KeepAlive: 30 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error { return checkAddress(address, in) },
	}
	config.Dial = dialer.DialContext
	return nil
}

// checkAddress is asked for each address before it is connected to.
func checkAddress(address string, in *clusters.Inline) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &answerError{fmt.Errorf("%s leads to %q, which is no IP address", in.Origin, address)}
	}
	if why := hub.Refused(to, *in); why != "" {
		return &answerError{fmt.Errorf("%s leads to %q, which %s", in.Origin, address, why)}
	}
	return nil
}
