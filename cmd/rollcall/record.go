package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
	"rollcall.dev/rollcall/clusters/recorded"
	"rollcall.dev/rollcall/clusters/registry"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/sync/schedule"
)

// recordFlags say what to record and where to put it.
type recordFlags struct {
	name       string
	kubeconfig string
	context    string
	inCluster  bool
	to         string
	push       string
	tokenFile  string
	caFile     string
	every      string
	forecast   bool
	timeout    time.Duration
}

func recordCommand(s streams) *cobra.Command {
	var r recordFlags
	cmd := &cobra.Command{
		Use: "record [NAME]", Short: "Write a compact, redacted snapshot of a cluster, to be judged elsewhere", Args: cobra.MaximumNArgs(1),
		Long: `Observe a cluster and write what a report is made of: nodes with labels, taints
and allocatable resources, DaemonSets, their pods, revisions and events. Left out
are environment, arguments, commands, probes, annotations of others and pods that
are no daemon's. With --push the snapshot is sent by PUT from where the cluster
is, and a Cluster file elsewhere names its location in spec.recorded.`,
		Example: `  rollcall record prod-eu --context prod-eu
  rollcall record --to - | gunzip | jq .daemonSets
  rollcall record edge-7 --in-cluster --push https://store.example/edge-7.json.gz --token-file token --every 5m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.name = append(args, "")[0]
			return r.run(cmd.Context(), s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` (default: $KUBECONFIG, else ~/.kube/config)")
	f.StringVar(&r.context, "context", "", "a context of the kubeconfig (default: the current one)")
	f.BoolVar(&r.inCluster, "in-cluster", false, "the cluster that this runs in, with its pod's ServiceAccount")
	f.StringVar(&r.to, "to", "", "the `FILE` to write, - for standard output (default: NAME.snapshot.json.gz)")
	f.StringVar(&r.push, "push", "", "PUT it to an https `URL` instead")
	f.StringVar(&r.tokenFile, "token-file", "", "bearer token for --push, read each time")
	f.StringVar(&r.caFile, "ca-file", "", "what signs the certificate of --push's server, in place of the system's")
	f.BoolVar(&r.forecast, "forecast", false, "also what the pods of all namespaces ask of their nodes, without their names, so that rollcall plan can tell what fits")
	f.StringVar(&r.every, "every", "", "do it again and again: a duration of 30s at least, or five cron fields")
	f.DurationVar(&r.timeout, "timeout", time.Minute, "how long the cluster, and then the push, may take")
	return cmd
}

func (r *recordFlags) run(ctx context.Context, s streams) error {
	if err := r.check(); err != nil {
		return err
	}
	c, err := r.cluster()
	if err != nil {
		return err
	}
	var observer kube.Observer
	defer s.closed(&observer)
	if r.every == "" {
		return r.once(ctx, s, &observer, c)
	}
	ticks, err := r.ticks()
	if err != nil {
		return err
	}
	return r.repeat(ctx, s, &observer, c, ticks.Next)
}

// repeat records until it is told to end. A time that fails is told, and the
// next one comes all the same.
func (r *recordFlags) repeat(ctx context.Context, s streams, o *kube.Observer, c clusters.Cluster, next func(time.Time) time.Time) error {
	for {
		if err := r.once(ctx, s, o, c); err != nil && ctx.Err() == nil {
			s.tell("%v", err)
		}
		timer := time.NewTimer(time.Until(next(time.Now())))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

func (r *recordFlags) check() error {
	switch {
	case r.push != "" && r.to != "":
		return errors.New("either --to or --push")
	case r.push == "" && r.tokenFile+r.caFile != "":
		return errors.New("--token-file and --ca-file go with --push")
	case r.inCluster && r.kubeconfig+r.context != "":
		return errors.New("--in-cluster goes with neither --kubeconfig nor --context")
	case r.inCluster && r.name == "":
		return errors.New("name the cluster: rollcall record NAME --in-cluster")
	case r.timeout <= 0:
		return fmt.Errorf("--timeout %s: must be positive", r.timeout)
	}
	if r.push == "" {
		return nil
	}
	u, err := url.Parse(r.push)
	switch {
	case err != nil, u.Host == "":
		return errors.New("--push is no URL")
	case u.User != nil:
		return errors.New("--push holds a credential: name a file that holds a token in --token-file")
	case u.Scheme != "https" && !(u.Scheme == "http" && clusters.IsLoopback(u.Hostname())):
		return fmt.Errorf("--push %s://%s: must be https", u.Scheme, u.Host)
	}
	return nil
}

// ticks is when to record again.
func (r *recordFlags) ticks() (schedule.Schedule, error) {
	spec := r.every
	if d, err := time.ParseDuration(r.every); err == nil {
		if d < 30*time.Second {
			return schedule.Schedule{}, fmt.Errorf("--every %s: 30s at least", d)
		}
		spec = "@every " + r.every
	}
	ticks, err := schedule.Parse(spec, "UTC")
	if err != nil {
		return ticks, fmt.Errorf("--every: %w", err)
	}
	return ticks, nil
}

// cluster is what is recorded: one context, or where this runs.
func (r *recordFlags) cluster() (clusters.Cluster, error) {
	if r.inCluster {
		return clusters.Cluster{Name: r.name, Kubeconfig: &clusters.Kubeconfig{InCluster: true}}, nil
	}
	found, err := registry.Contexts(r.kubeconfig, registry.ContextOptions{Context: r.context, DefaultPolicy: clusters.DefaultPolicy()})
	if err != nil {
		return clusters.Cluster{}, err
	}
	c := found[0]
	c.Name = cmp.Or(r.name, nameOf(c.Name))
	return c, nil
}

// once observes, packs and delivers.
func (r *recordFlags) once(ctx context.Context, s streams, o *kube.Observer, c clusters.Cluster) error {
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	live, err := o.Observe(limited, c, clusters.Want{Forecast: r.forecast})
	if err != nil {
		return fmt.Errorf("recording cluster %q: %w", c.Name, err)
	}
	var b bytes.Buffer
	if err := recorded.Write(&b, c.Name, version(), live); err != nil {
		return fmt.Errorf("recording cluster %q: %w", c.Name, err)
	}
	where, err := r.deliver(ctx, s, c.Name, b.Bytes())
	if err != nil {
		return fmt.Errorf("delivering the snapshot of cluster %q: %w", c.Name, err)
	}
	s.tell("cluster %q: %d nodes, %d DaemonSets, %d bytes, redacted: %s", c.Name, len(live.Nodes), len(live.DaemonSets), b.Len(), where)
	return nil
}

func (r *recordFlags) deliver(ctx context.Context, s streams, name string, data []byte) (where string, err error) {
	if r.push != "" {
		return r.send(ctx, data)
	}
	file := cmp.Or(r.to, name+".snapshot.json.gz")
	if file == "-" {
		_, err := s.out.Write(data)
		return "standard output", err
	}
	return file, writePrivate(file, data)
}

// send puts the snapshot where --push says. What the server says of a refusal is
// not shown: it may repeat the token.
func (r *recordFlags) send(ctx context.Context, data []byte) (where string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	client, done, err := recorded.Client(r.caFile)
	if err != nil {
		return "", err
	}
	defer done()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, r.push, bytes.NewReader(data))
	if err != nil {
		return "", errors.New("--push is no URL")
	}
	if err := recorded.Authorize(req, r.tokenFile); err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/gzip")
	res, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("sending to %q: %w", req.URL.Host, recorded.Plain(err))
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // so that the connection ends in order
	if res.StatusCode/100 != 2 {
		return "", fmt.Errorf("sending to %q: it answered %s", req.URL.Host, report.Printable(res.Status))
	}
	return strings.TrimSuffix(req.URL.Scheme+"://"+req.URL.Host+req.URL.Path, "/"), nil
}
