package gitrepo

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
)

// many makes a repository of n files in one step, with one small overlay.
func many(t *testing.T, n int) repo {
	t.Helper()
	r := newRepo(t)
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Env, cmd.Stderr = r.dir, gitEnv(), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(in)
	fmt.Fprint(w, "commit refs/heads/main\ncommitter t <t@example.invalid> 1772700000 +0000\ndata 1\nm\n")
	for i := range n {
		text := fmt.Sprintf("kind: ConfigMap\nmetadata: {name: c%d}\ndata: {k: %q}\n", i, strings.Repeat(strconv.Itoa(i), 20))
		fmt.Fprintf(w, "M 100644 inline apps/%02d/%03d/f%d.yaml\ndata %d\n%s\n", i%37, i/37%500, i, len(text), text)
	}
	fmt.Fprint(w, "M 100644 inline overlay/kustomization.yaml\ndata 20\nresources: [ds.yaml]\n\n")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	r.git("reset", "-q", "--soft", "main")
	return r
}

// large is set in the process whose memory is measured: what it is to do.
const large = "ROLLCALL_TEST_LARGE"

// files is how many there are: 200,000 in make prove.
const files = "ROLLCALL_FILES"

// A large repository with one small overlay costs little more memory than go-git
// needs to store its pack, and a second process does not download it again.
func TestLargeRepository(t *testing.T) {
	if what := os.Getenv(large); what != "" {
		measured(t, what, os.Getenv(large+"_URL"), os.Getenv(large+"_CACHE"))
		return
	}
	n := 10_000
	if text := os.Getenv(files); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, many(t, n))
	peaks := map[string]int64{}
	for _, what := range []string{"alone", "first", "second"} {
		s.counts()
		cmd := exec.Command(os.Args[0], "-test.run", "^TestLargeRepository$", "-test.v")
		cmd.Env = append(os.Environ(), large+"="+what, large+"_URL="+s.URL+"/repo", large+"_CACHE="+s.cache)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var took string
		peak := int64(0)
		if _, err := fmt.Sscanf(string(out[strings.Index(string(out), "took "):]), "took %s peak %d", &took, &peak); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		peaks[what] = peak
		lists, packs := s.counts()
		t.Logf("%d files, %s: %s, %d MiB at most, %d requests", n, what, took, peak>>20, lists+packs)
		if what == "second" && packs > 0 {
			t.Error("the second process downloaded again")
		}
	}
	const allowed = 150 << 20
	if more := peaks["first"] - peaks["alone"]; more > allowed {
		t.Errorf("%d MiB more than go-git alone, want at most %d", more>>20, allowed>>20)
	}
	if peaks["second"] > peaks["first"] {
		t.Errorf("the second process needs %d MiB, the first %d", peaks["second"]>>20, peaks["first"]>>20)
	}
}

func measured(t *testing.T, what, url, cache string) {
	began := time.Now()
	if what == "alone" {
		_, err := git.PlainCloneContext(t.Context(), t.TempDir(), true, &git.CloneOptions{URL: url, Depth: 1, SingleBranch: true})
		if err != nil {
			t.Fatal(err)
		}
	} else {
		a := fetchFrom(t, open(t, Config{URL: url, Cache: cache, Path: "overlay"}))
		content(t, a.Files, "kustomization.yaml")
	}
	fmt.Printf("took %s peak %d\n", time.Since(began).Round(time.Millisecond), peak(t))
}

// peak is the most memory that this process ever had, in bytes.
func peak(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
