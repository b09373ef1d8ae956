package cli

import (
	"io"
	"os"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/grpclog"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	controllerruntime "sigs.k8s.io/controller-runtime/pkg/log"
)

// servesAnnotation marks a command that runs a server, which keeps a log of its own.
const servesAnnotation = "serves"

// warnings prints what a server warns of, each once.
var warnings = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})

// quietLibraries hides what client libraries log. They return their errors, which are printed once.
func quietLibraries() {
	klog.SetLogger(logr.Discard())
	controllerruntime.SetLogger(logr.Discard())
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	rest.SetDefaultWarningHandler(warnings)
}
