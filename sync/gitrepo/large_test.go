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

// large is set in the process whose memory is measured.
const large = "ROLLCALL_TEST_LARGE"

func TestLargeRepository(t *testing.T) {
	if url := os.Getenv(large); url != "" {
		repository := open(t, Config{URL: url, Cache: os.Getenv(large + "_CACHE"), Path: "overlay"})
		began := time.Now()
		a := fetchFrom(t, repository)
		content(t, a.Files, "kustomization.yaml")
		fmt.Printf("took %s\npeak %d\n", time.Since(began), peak(t))
		return
	}
	r := many(t, 200_000)
	s := serve(t, r)
	for _, run := range []string{"first", "second"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestLargeRepository$")
		cmd.Env = append(os.Environ(), large+"="+s.URL+"/repo", large+"_CACHE="+s.cache)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("%s: %s", run, out)
	}
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
