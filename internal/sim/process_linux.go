package sim

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

func residentSet(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if rest, found := bytes.CutPrefix(line, []byte("VmRSS:")); found {
			kib, _ := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
			return kib << 10
		}
	}
	return 0
}
