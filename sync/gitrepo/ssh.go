package gitrepo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"
	"golang.org/x/net/proxy"
)

// sshSession speaks to git-upload-pack over one SSH connection. go-git's own
// is not used: it ignores its context, and waits for a silent server for ever.
type sshSession struct {
	client  *ssh.Client
	command string
	limits  limits
	open    *channel // its refs are read and its pack is not asked for
}

// dialSSH connects, checks the server's key and logs in. The connection ends
// with ctx, whatever the server does.
func (r *Repository) dialSSH(ctx context.Context) (s *sshSession, end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	config, checked, err := r.auth.SSH.config(ctx, r.at)
	if err != nil {
		return nil, nil, err
	}
	address := net.JoinHostPort(r.at.remote.Hostname(), cmp.Or(r.at.remote.Port(), "22"))
	dialing, dialed := context.WithTimeout(ctx, connectLimit)
	defer dialed()
	raw, err := proxy.Dial(dialing, "tcp", address)
	if err != nil {
		if over(ctx) != nil {
			return nil, nil, fmt.Errorf("connecting: %w", over(ctx))
		}
		return nil, nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	conn := newTimed(ctx, raw, r.limits.idle)
	context.AfterFunc(ctx, func() { _ = raw.Close() })
	secured, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		return nil, nil, explainSSH(ctx, err, *checked)
	}
	client := ssh.NewClient(secured, channels, requests)
	end = func() {
		_ = client.Close()
		_ = client.Wait() // the library's goroutines end with the connection
		cancel()
	}
	return &sshSession{client: client, command: "git-upload-pack " + quote(r.at.path), limits: r.limits}, end, nil
}

// explainSSH turns what failed before Git came to word into one plain error.
func explainSSH(ctx context.Context, err, hostKey error) error {
	var network net.Error
	switch {
	case hostKey != nil:
		return hostKey
	case over(ctx) != nil:
		return fmt.Errorf("waiting for the server: %w", over(ctx))
	case strings.Contains(err.Error(), "unable to authenticate"):
		return fmt.Errorf("%w: the server does not accept the ssh key", ErrUnauthorized)
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// over is why a context has ended, or is about to: a connection's deadline, which
// is the same, may be noticed first.
func over(ctx context.Context) error {
	if until, ok := ctx.Deadline(); ok && time.Until(until) <= 0 {
		return cmp.Or(ctx.Err(), context.DeadlineExceeded)
	}
	return ctx.Err()
}

// quote quotes a path for the server's shell, as Git does.
func quote(p string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(p) + "'"
}

// channel is one run of git-upload-pack.
type channel struct {
	session *ssh.Session
	in      io.WriteCloser
	limit   *capped
	out     *bufio.Reader
	said    *tail
}

func (s *sshSession) start() (*channel, error) {
	session, err := s.client.NewSession()
	if err != nil {
		return nil, fmt.Errorf("%w: opening an ssh channel: %w", ErrUnreachable, err)
	}
	c := &channel{session: session, said: &tail{}}
	session.Stderr = c.said
	out, err := session.StdoutPipe()
	if err == nil {
		c.in, err = session.StdinPipe()
	}
	if err == nil {
		err = session.Start(s.command)
	}
	if err != nil {
		_ = session.Close()
		return nil, fmt.Errorf("%w: starting git-upload-pack: %w", ErrUnreachable, err)
	}
	c.limit = &capped{r: out, left: s.limits.refs, limit: s.limits.refs}
	c.out = bufio.NewReader(c.limit)
	return c, nil
}

// AdvertisedReferencesContext asks for the refs. The context is the one that
// the connection was made with.
func (s *sshSession) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	c, err := s.start()
	if err != nil {
		return nil, err
	}
	if said, ok := errLine(c.out); ok {
		c.close()
		return nil, saidError(said)
	}
	refs := packp.NewAdvRefs()
	err = refs.Decode(c.out)
	if err == nil && !refs.IsEmpty() {
		transport.FilterUnsupportedCapabilities(refs.Capabilities)
		s.open = c
		return refs, nil
	}
	if err == nil || errors.Is(err, packp.ErrEmptyAdvRefs) {
		c.close()
		return nil, transport.ErrEmptyRemoteRepository
	}
	return nil, c.fail(err)
}

// AdvertisedReferences is AdvertisedReferencesContext.
func (s *sshSession) AdvertisedReferences() (*packp.AdvRefs, error) {
	return s.AdvertisedReferencesContext(context.Background())
}

// UploadPack asks for a pack. A first one uses the channel that the refs came
// through; git-upload-pack gives one each.
func (s *sshSession) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if s.open == nil {
		if _, err := s.AdvertisedReferencesContext(ctx); err != nil {
			return nil, err
		}
	}
	c := s.open
	s.open = nil
	c.limit.left, c.limit.limit = s.limits.pack, s.limits.pack
	if err := c.send(req); err != nil {
		return nil, c.fail(err)
	}
	if said, ok := errLine(c.out); ok {
		c.close()
		return nil, saidError(said)
	}
	if _, err := c.out.Peek(1); errors.Is(err, io.EOF) {
		return nil, c.fail(transport.ErrEmptyUploadPackRequest)
	}
	res := packp.NewUploadPackResponse(req)
	if err := res.Decode(c); err != nil {
		return nil, c.fail(err)
	}
	return res, nil
}

// send writes the request at once: what we have is one commit at most, so the
// server need not be heard between.
func (c *channel) send(req *packp.UploadPackRequest) error {
	var b bytes.Buffer
	if err := req.UploadRequest.Encode(&b); err != nil {
		return err
	}
	if err := req.UploadHaves.Encode(&b, false); err != nil {
		return err
	}
	b.WriteString("0009done\n")
	_, err := c.in.Write(b.Bytes())
	return err
}

// Read reads what git-upload-pack writes.
func (c *channel) Read(p []byte) (int, error) { return c.out.Read(p) }

// Close ends the run.
func (c *channel) Close() error {
	c.close()
	return nil
}

func (c *channel) close() {
	_ = c.in.Close() // both sides are done, or the connection is
	_ = c.session.Close()
}

// fail closes the channel and returns what the server said on its standard
// error, if it did, since that tells more than how our reading ended.
func (c *channel) fail(err error) error {
	if errors.Is(err, packp.ErrEmptyInput) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		_ = c.session.Wait() // so that all of it is heard; its end was seen
		c.close()
		if said := c.said.text(); said != "" {
			return saidError(said)
		}
		if errors.Is(err, packp.ErrEmptyInput) {
			return fmt.Errorf("%w: git-upload-pack ended without an answer", ErrUnreachable)
		}
		return err
	}
	c.close()
	return err
}

// Close says goodbye to a server whose pack is not wanted.
func (s *sshSession) Close() error {
	if s.open != nil {
		_, _ = io.WriteString(s.open.in, "0000") // as Git does; the server may be gone
		s.open.close()
		s.open = nil
	}
	return nil
}

// tail keeps the end of what a server writes to its standard error.
type tail struct {
	mu  sync.Mutex
	end []byte
}

// Write keeps the last bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	if over := len(t.end) - maxSaid; over > 0 {
		t.end = t.end[over:]
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.end), "")), " ")
}

// timed is a connection on which every read and write has a deadline: the
// context's, and that of a server that has stopped talking.
type timed struct {
	net.Conn
	until time.Time // zero: none
	idle  time.Duration
}

func newTimed(ctx context.Context, c net.Conn, idle time.Duration) *timed {
	t := &timed{Conn: c, idle: idle}
	t.until, _ = ctx.Deadline()
	return t
}

func (t *timed) next() time.Time {
	d := time.Now().Add(t.idle)
	if !t.until.IsZero() && t.until.Before(d) {
		return t.until
	}
	return d
}

func (t *timed) Read(p []byte) (int, error) {
	if err := t.SetReadDeadline(t.next()); err != nil {
		return 0, err
	}
	return t.Conn.Read(p)
}

func (t *timed) Write(p []byte) (int, error) {
	if err := t.SetWriteDeadline(t.next()); err != nil {
		return 0, err
	}
	return t.Conn.Write(p)
}

var _ transport.UploadPackSession = (*sshSession)(nil)
