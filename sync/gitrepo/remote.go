package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// errNoPack is returned where an answer had neither a pack nor a reason.
var errNoPack = errors.New("the server sent no pack")

// readRemote asks for the refs, one round trip, and downloads the commit
// unless it is cached and complete.
func (r *Repository) readRemote(ctx context.Context) (target, *snapshot, error) {
	s, err := r.connect(ctx)
	if err != nil {
		return target{}, nil, err
	}
	defer s.close()
	answer, err := s.list(ctx)
	if err != nil {
		return target{}, nil, err
	}
	t, err := r.want.find(answer)
	if err != nil {
		return target{}, nil, err
	}
	if snap := r.remembered(t); snap != nil {
		return t, snap, nil
	}
	unlock, err := r.cache.lock(ctx)
	if err != nil {
		return target{}, nil, err
	}
	defer unlock()
	snap, err := r.cache.open(ctx, t)
	if errors.Is(err, ErrIncomplete) {
		snap, err = r.cache.fill(ctx, t, s)
	}
	return t, snap, err
}

// session is one conversation with the server.
type session struct {
	git    transport.UploadPackSession
	creds  credentials
	close  func()
	answer refs
	can    *capability.List
}

func (r *Repository) connect(ctx context.Context) (*session, error) {
	if r.at.isSSH() {
		git, end, err := r.dialSSH(ctx)
		if err != nil {
			return nil, err
		}
		return &session{git: git, creds: credentials{}, close: func() { _ = git.Close(); end() }}, nil
	}
	creds, err := r.credentials(ctx)
	if err != nil {
		return nil, err
	}
	client, closeIdle, err := r.httpClient()
	if err != nil {
		return nil, err
	}
	git, err := githttp.NewClient(client).NewUploadPackSession(endpoint(r.at.remote), creds.method)
	if err != nil {
		return nil, fmt.Errorf("connecting: %s", creds.scrub(err.Error()))
	}
	return &session{git: git, creds: creds, close: closeIdle}, nil
}

// endpoint keeps the path escaped, which transport.NewEndpoint does not.
func endpoint(u *url.URL) *transport.Endpoint {
	host := u.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	number, _ := strconv.Atoi(port(u)) // digits, as url.Parse has checked
	return &transport.Endpoint{Protocol: u.Scheme, Host: host, Port: number, Path: u.EscapedPath()}
}

// list asks for all refs.
func (s *session) list(ctx context.Context) (refs, error) {
	adv, err := s.git.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return refs{}, nil
	}
	if err != nil {
		return refs{}, fmt.Errorf("listing refs: %w", s.explain(ctx, err))
	}
	s.can = adv.Capabilities
	s.answer = refs{
		tips:   make(map[plumbing.ReferenceName]plumbing.Hash, len(adv.References)),
		peeled: make(map[plumbing.ReferenceName]plumbing.Hash, len(adv.Peeled)),
	}
	for name, h := range adv.References {
		s.answer.tips[plumbing.ReferenceName(name)] = h
	}
	for name, h := range adv.Peeled {
		s.answer.peeled[plumbing.ReferenceName(name)] = h
	}
	if adv.Head != nil {
		s.answer.head = *adv.Head
	}
	for _, symref := range adv.Capabilities.Get(capability.SymRef) {
		if branch, ok := strings.CutPrefix(symref, "HEAD:refs/heads/"); ok {
			s.answer.branch = branch
		}
	}
	return s.answer, nil
}

// overlap is how many commits back a download goes that builds on an earlier
// one. A server compares with what we have only where history connects the two,
// so with one commit it would send all files again; and without a limit, all of
// a rewritten history.
const overlap = 32

// download puts the commit of t into a repository that has have, if that is
// not zero. A commit to which no ref need lead is asked for by itself, and if
// the server will not have that, looked for in all branches and tags.
func (s *session) download(ctx context.Context, into *filesystem.Storage, t target, have plumbing.Hash) error {
	depth := 1
	if !have.IsZero() {
		depth = overlap
	}
	err := s.pack(ctx, into, []plumbing.Hash{t.want}, depth, have)
	if !t.exact || !refused(err) {
		return err
	}
	all := s.answer.all(t.branch)
	if len(all) == 0 {
		return s.nowhere(t)
	}
	if err := s.pack(ctx, into, all, 0, plumbing.ZeroHash); err != nil {
		return err
	}
	if into.HasEncodedObject(t.commit) != nil {
		return s.nowhere(t)
	}
	return nil
}

// nowhere is why a commit that the server does not give was not found either
// where it was looked for.
func (s *session) nowhere(t target) error {
	switch {
	case len(s.answer.tips) == 0:
		return ErrEmpty
	case t.branch != "":
		return fmt.Errorf("%w: the server does not give it, and branch %q does not lead to it", ErrRefNotFound, t.branch.Short())
	}
	return fmt.Errorf("%w: the server does not give it, and no branch or tag leads to it", ErrRefNotFound)
}

// refused tells that the server answered and would not give the object: in
// Git's words, or by a status, or by no pack at all.
func refused(err error) bool {
	var said saidError
	var status statusError
	return errors.As(err, &said) || errors.Is(err, errNoPack) || errors.As(err, &status) && !errors.Is(err, ErrUnauthorized)
}

// all are the tips of all branches and tags, each once, or of one branch.
func (r refs) all(branch plumbing.ReferenceName) []plumbing.Hash {
	if branch != "" {
		if h, ok := r.tips[branch]; ok {
			return []plumbing.Hash{h}
		}
		return nil
	}
	var hashes []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for name, h := range r.tips {
		if (name.IsBranch() || name.IsTag()) && !seen[h] {
			seen[h] = true
			hashes = append(hashes, h)
		}
	}
	plumbing.HashesSort(hashes)
	return hashes
}

// pack asks for a pack and stores it. What the pack has is not checked here.
func (s *session) pack(ctx context.Context, into *filesystem.Storage, wants []plumbing.Hash, depth int, have plumbing.Hash) error {
	req, err := s.request(into, wants, depth, have)
	if err != nil {
		return err
	}
	res, err := s.git.UploadPack(ctx, req)
	if err != nil {
		return fmt.Errorf("asking for the pack: %w", s.explain(ctx, err))
	}
	defer res.Close()
	var r io.Reader = res
	if req.Capabilities.Supports(capability.Sideband64k) {
		r = sideband.NewDemuxer(sideband.Sideband64k, res)
	}
	if err := packfile.UpdateObjectStorage(into, r); err != nil {
		if storageFault(err) {
			return fmt.Errorf("%w: storing the pack: %w", ErrStorage, err)
		}
		err = s.explain(ctx, err)
		if ctx.Err() != nil || isAnswer(err) || errors.Is(err, errNoPack) {
			return fmt.Errorf("reading the pack: %w", err)
		}
		return fmt.Errorf("%w: reading the pack: %w", ErrIncomplete, err)
	}
	if err := into.SetShallow(ends(req.Shallows, res.ShallowUpdate)); err != nil {
		return fmt.Errorf("recording where history ends: %w", err)
	}
	return nil
}

// storageFault tells that what was sent could not be kept.
func storageFault(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EFBIG, syscall.EIO, fs.ErrPermission}, func(e error) bool { return errors.Is(err, e) })
}

// ends are the commits whose parents are not there, after a download.
func ends(before []plumbing.Hash, u packp.ShallowUpdate) []plumbing.Hash {
	after := slices.Concat(before, u.Shallows)
	after = slices.DeleteFunc(after, func(h plumbing.Hash) bool { return slices.Contains(u.Unshallows, h) })
	plumbing.HashesSort(after)
	return slices.Compact(after)
}

func (s *session) request(into *filesystem.Storage, wants []plumbing.Hash, depth int, have plumbing.Hash) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequest()
	req.Wants = wants
	offer := []capability.Capability{capability.Sideband64k, capability.OFSDelta, capability.NoProgress}
	if depth > 0 && s.can.Supports(capability.Shallow) {
		offer = append(offer, capability.Shallow)
		req.Depth = packp.DepthCommits(depth)
	}
	for _, c := range offer {
		if s.can.Supports(c) {
			if err := req.Capabilities.Set(c); err != nil {
				return nil, fmt.Errorf("asking for the pack: %w", err)
			}
		}
	}
	if have.IsZero() {
		return req, nil
	}
	req.Haves = []plumbing.Hash{have}
	if req.Depth.IsZero() {
		return req, nil
	}
	var err error
	if req.Shallows, err = into.Shallow(); err != nil {
		return nil, fmt.Errorf("reading where history ends: %w", err)
	}
	return req, nil
}

// explain turns what the HTTP client and go-git say into one plain error. Only
// known errors are kept as such: the text of all others may come from the
// server, which knows the credentials, and is scrubbed.
func (s *session) explain(ctx context.Context, err error) error {
	var unexpected *plumbing.UnexpectedError
	if errors.As(err, &unexpected) { // it does not unwrap
		err = unexpected.Err
	}
	var status statusError
	var said saidError
	var network net.Error
	switch {
	case over(ctx) != nil:
		return fmt.Errorf("waiting for the server: %w", over(ctx))
	case errors.As(err, &status):
		return s.explainStatus(status)
	case errors.As(err, &said):
		return saidError(s.creds.scrub(string(said)))
	case isAnswer(err):
		return s.explainAnswer(err)
	case errors.Is(err, transport.ErrEmptyUploadPackRequest), errors.Is(err, packfile.ErrEmptyPackfile):
		return errNoPack
	case errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("%w: the server stopped answering: %s", ErrUnreachable, s.creds.scrub(bare(err).Error()))
	case errors.As(err, &network):
		return fmt.Errorf("%w: %s", ErrUnreachable, s.creds.scrub(bare(err).Error()))
	case errors.Is(err, ErrUnreachable):
		return err
	}
	return errors.New(s.creds.scrub(err.Error()))
}

// explainAnswer takes the inner error out: the ones around it print the URL
// that the server redirected to.
func (s *session) explainAnswer(err error) error {
	var redirect redirectError
	var notGit notGitError
	switch {
	case errors.As(err, &redirect):
		return redirectError(s.creds.scrub(string(redirect)))
	case errors.As(err, &notGit):
		return notGitError(s.creds.scrub(string(notGit)))
	}
	return bare(err)
}

func (s *session) explainStatus(status statusError) error {
	switch int(status) {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		if s.creds.method == nil {
			return fmt.Errorf("%w: %w: it asks for credentials, and auth names none", ErrUnauthorized, status)
		}
		return fmt.Errorf("%w: %w: it refused the credentials", ErrUnauthorized, status)
	case http.StatusNotFound:
		return fmt.Errorf("%w: there is no such repository, or not for these credentials", status)
	}
	return status
}

// bare is the error below the HTTP client's, which prints the URL again.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
