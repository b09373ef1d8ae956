package script

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

// weighing is the context of a call, which is asked from time to time how it is: it then looks at what the process
// holds.
type weighing struct {
	context.Context
	asked int
	most  uint64
}

func (w *weighing) Err() error {
	if w.asked++; w.asked%512 == 0 {
		w.most = max(w.most, inUse())
	}
	return nil
}

// held is what is in use now, in bytes.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What things weigh is estimated. Whatever a script gathers, the process holds little more for it than it is allowed
// to.
func TestMemoryLimitIsEnforced(t *testing.T) {
	const limit = 4 << 20
	for name, body := range map[string]string{
		"numbers":                "local t, i = {}, 0 while true do i = i + 1 t[i] = i end",
		"strings":                "local t, i = {}, 0 while true do i = i + 1 t[i] = 'k' .. i end",
		"fields":                 "local t, i = {}, 0 while true do i = i + 1 t['k' .. i] = i end",
		"globals":                "local i = 0 while true do i = i + 1 _G['g' .. i] = i end",
		"odd keys":               "local t, i = {}, 0 while true do i = i + 1 t[i * 7.5] = i end",
		"empty tables":           "local t, i = {}, 0 while true do i = i + 1 t[i] = {} end",
		"objects":                "local t, i = {}, 0 while true do i = i + 1 t[i] = {a = 1, b = 2, c = 3} end",
		"lists":                  "local t, i = {}, 0 while true do i = i + 1 t[i] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20} end",
		"functions":              "local t, i = {}, 0 while true do i = i + 1 local a, b, c = i, i, i t[i] = function() return a + b + c end end",
		"a string that doubles":  "local s = 'x' while true do s = s .. s end",
		"strings of a kilobyte":  "local t, i = {}, 0 while true do i = i + 1 t[i] = string.rep('x', 1000) .. i end",
		"needs that are dropped": "local kube = require('kube') while true do kube.accuratePodRequirements(obj.spec.template) end",
		"a list that is spilled": "local t = {} for i = 1, 500 do t[i] = i end local u, i = {}, 0 while true do i = i + 1 u[i] = {unpack(t)} end",
	} {
		p, err := Compile("ours", replicasOp, "function GetReplicas(obj) "+body+" end", nil)
		if err != nil {
			t.Fatal(err)
		}
		p.bounds = bounds{time.Minute, limit}
		before := inUse()
		w := &weighing{Context: context.Background(), most: before}
		_, err = p.Evaluate(w, inputs{Object: cloneSet(t)})
		var e *Error
		if !errors.As(err, &e) || e.Reason != MemoryExceeded {
			t.Errorf("%s: ended with %v", name, err)
		}
		if over := w.most - before; over > limit+limit/2 {
			t.Errorf("%s: the process held %d KiB for a script that may hold %d", name, over>>10, limit>>10)
		} else {
			t.Logf("%s: %d of %d KiB", name, over>>10, limit>>10)
		}
	}
}
