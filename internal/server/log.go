package server

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"k8s.io/klog/v2"
	controllerruntime "sigs.k8s.io/controller-runtime/pkg/log"
)

// logLimit bounds one log file; two exist at most. Nobody else rotates the file of --log-file, and it would
// fill the disk of the store.
const logLimit = 64 << 20

// setUpLog sends the logs of klog, logr and slog to one place in one format. The returned writer is that place, for
// libraries with their own logger.
func setUpLog(c *Config) (w io.Writer, closeLog func(), err error) {
	w, closeLog = os.Stderr, func() {}
	if file := c.logFile(); file != "-" {
		l := &logFile{path: file}
		if err := l.open(); err != nil {
			return nil, nil, fmt.Errorf("log file %s cannot be written (%w): choose another with --log-file", file, reason(err))
		}
		w, closeLog = l, func() { _ = l.Close() }
	}
	options := &slog.HandlerOptions{Level: slog.Level(-c.Log.Level)}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if c.Log.Format == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	var level klog.Level
	if err := level.Set(fmt.Sprint(c.Log.Level)); err != nil {
		return nil, nil, fmt.Errorf("set the log level: %w", err)
	}
	klog.SetSlogLogger(slog.New(handler))
	controllerruntime.SetLogger(klog.Background())
	slog.SetDefault(slog.New(handler))
	return w, closeLog, nil
}

// logFile is a log file that is rotated when it reaches logLimit. The old file is kept as .1.
type logFile struct {
	path string

	mu   sync.Mutex
	file *os.File // nil once closed: later messages are lost
	size int64
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.size = f, info.Size()
	return nil
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return len(p), nil
	}
	if l.size > 0 && l.size+int64(len(p)) > logLimit {
		l.file.Close()
		if err := os.Rename(l.path, l.path+".1"); err != nil {
			return 0, err
		}
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.file
	l.file = nil
	return f.Close()
}
