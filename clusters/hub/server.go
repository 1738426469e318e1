package hub

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"rollcall.dev/rollcall/clusters"
)

// Addresses at which clouds answer machines about themselves, with credentials,
// beside the link-local ones.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"), netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"),
}

// nat64 carries an IPv4 address in its last four bytes.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Refused tells why a kubeconfig from a Secret may not lead to an address, once
// its name was resolved; it is empty where it may.
func Refused(to netip.AddrPort, in clusters.Inline) string {
	addr := to.Addr().WithZone("").Unmap()
	if nat64.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case addr.IsUnspecified() || addr.Is4() && addr.As4()[0] == 0:
		return "is an unspecified address"
	case addr.IsLinkLocalUnicast():
		return "is a link-local address, where clouds keep credentials of the machine"
	case slices.Contains(metadataAddresses, addr):
		return "is a cloud's metadata service"
	case addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "is no address of one machine"
	case in.AllowLoopback:
		return ""
	case addr.IsLoopback():
		return "is a loopback address" + howToAllow
	case slices.Contains(in.Hub, netip.AddrPortFrom(addr, to.Port()).String()):
		return "is the hub's own API server" + howToAllow
	}
	return ""
}

const howToAllow = ": allow it with spec.clusters.hub.allowLoopback"

// Names that lead to no cluster of their own.
var (
	loopbackNames = []string{"localhost", "localhost.localdomain", "localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback"}
	metadataNames = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
	hubNames      = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	// numeric is an old way to write an address, which resolvers take for one.
	numeric = regexp.MustCompile(`(^|\.)(0[xX][0-9a-fA-F]*|[0-9]+)$`)
)

// checkServer tells what is wrong with the server that a Secret names, as far
// as the text tells it; it never repeats the URL.
func checkServer(raw string, in clusters.Inline) string {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "it is missing"
	case err != nil || u.Host == "" || u.Opaque != "":
		return "must be a URL such as https://api.prod.example:6443"
	case u.Scheme != "https":
		return "must be https: without TLS the credential can be read on its way"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "must not hold a user, a query or a fragment"
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		to, err := netip.ParseAddrPort(HostPort(raw))
		if err != nil {
			to = netip.AddrPortFrom(addr, 443)
		}
		return Refused(to, in)
	}
	switch {
	case host == "" || numeric.MatchString(host) || strings.ContainsFunc(host, func(r rune) bool { return r > '~' }):
		return "must name a host, or an address in its usual form"
	case slices.Contains(metadataNames, host):
		return "is a cloud's metadata service"
	case in.AllowLoopback:
	case slices.Contains(loopbackNames, host) || strings.HasSuffix(host, ".localhost"):
		return "is a loopback address" + howToAllow
	case slices.Contains(hubNames, host) || slices.Contains(in.Hub, HostPort(raw)):
		return "is the hub's own API server" + howToAllow
	}
	return ""
}

// HostPort is the host and port of a server's URL, in a form that can be
// compared; it is empty where there is none.
func HostPort(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

// shownServer is a server's URL without a user and what else may be secret.
func shownServer(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
