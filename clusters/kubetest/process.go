package kubetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// process is a child whose end is always waited for.
type process struct {
	name string
	pid  int
	done chan struct{} // closed when it has ended
	err  error         // how it ended, once done is closed
}

// run starts one of the binaries with its output in a log in the data folder.
func (cp *ControlPlane) run(name string, args ...string) (*process, error) {
	log, err := os.Create(cp.file(name + ".log"))
	if err != nil {
		return nil, fmt.Errorf("making the log of %q: %w", name, err)
	}
	cmd := exec.Command(filepath.Join(cp.assets, name), args...)
	cmd.Dir = cp.dir
	cmd.Env = append(os.Environ(), "HOME="+cp.dir) // no ~/.kwok or ~/.kube of the developer
	cmd.Stdout, cmd.Stderr = log, log
	p, err := start(name, cmd)
	if err != nil {
		_ = log.Close() // nothing was written
		return nil, err
	}
	go func() {
		<-p.done
		_ = log.Close() // its writer is gone
	}()
	cp.processes = append(cp.processes, p)
	return p, nil
}

// start starts a child that the kernel kills when this process dies. The
// kernel watches the thread that forked, so that thread stays until the end.
func start(name string, cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &process{name: name, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		if p.err = cmd.Wait(); p.err == nil {
			p.err = errors.New("exit status 0")
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %q: %w", name, err)
	}
	return p, nil
}

// kill ends a process, also a paused one, and waits for it.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.done: // the number may be another's by now
	default:
		_ = syscall.Kill(p.pid, s) // it may have ended just now, which is as good
	}
}

// pause stops a process and returns when none of its threads runs any more:
// the signal alone leaves it the time to answer once again.
func (p *process) pause() {
	p.signal(syscall.SIGSTOP)
	for !p.stopped() {
		select {
		case <-p.done:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func (p *process) stopped() bool {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.pid))
	if err != nil {
		return false
	}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		// The state follows the name, which is in brackets and may hold some.
		if i := bytes.LastIndexByte(stat, ')'); err != nil || i < 0 || !bytes.HasPrefix(stat[i:], []byte(") T")) {
			return false
		}
	}
	return len(files) > 0
}

// freePorts returns addresses on which nothing listens. They lie below the
// range from which the kernel takes the ports of outgoing connections, so that
// none is lost between here and the start of a server.
func freePorts(n int) ([]string, error) {
	var addresses []string
	for range 1000 {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(20000+rand.IntN(12000)))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }() // all stay open until all are found
		if addresses = append(addresses, l.Addr().String()); len(addresses) == n {
			return addresses, nil
		}
	}
	return nil, fmt.Errorf("looking for %d free ports: none between 20000 and 32000", n)
}

func splitAddress(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(err) // it comes from freePorts
	}
	return host, port
}
