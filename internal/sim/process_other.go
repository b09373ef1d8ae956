//go:build unix && !linux

package sim

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent relies on the lifeline. The child has a process group of its own, so that a Ctrl-C reaches the
// parent alone, who then stops the members.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func residentSet(pid int) int64 {
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0
	}
	kib, _ := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return kib << 10
}
