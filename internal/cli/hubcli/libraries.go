package hubcli

import (
	"io"
	"os"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/grpclog"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	controllerruntime "sigs.k8s.io/controller-runtime/pkg/log"
)

// ServesAnnotation marks a command that runs a server, which keeps a log of its own.
const ServesAnnotation = "serves"

// Warnings prints what a server warns of, each once.
var Warnings = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})

// QuietLibraries hides what client libraries log. They return their errors, which are printed once.
func QuietLibraries() {
	klog.SetLogger(logr.Discard())
	controllerruntime.SetLogger(logr.Discard())
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	rest.SetDefaultWarningHandler(Warnings)
}
