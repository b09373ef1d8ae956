// Command chart packs the Helm chart with the version of a release, as helm package would, and with the same bytes each
// time.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("chart", flag.ContinueOnError)
	from := fs.String("chart", "", "folder of the chart")
	to := fs.String("output", "", "folder to write the package to")
	version := fs.String("version", "",
		"version of the image: the chart's appVersion, and its version where it is one of a release")
	date := fs.String("date", "", "date of every file in the package, in RFC 3339")
	if err := fs.Parse(args); err != nil {
		return err
	}
	made, err := time.Parse(time.RFC3339, *date)
	if err != nil {
		return fmt.Errorf("--date: %w", err)
	}
	c, err := loader.LoadDir(*from)
	if err != nil {
		return err
	}
	stamp(c, *version, made)
	file, err := util.Save(c, *to)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, file)
	return err
}

// described is how git describe names a commit after a tag, or files that are in none.
var described = regexp.MustCompile(`^(v.+?)(?:-(\d+)-(g[0-9a-f]+))?(-dirty)?$`)

// chartVersion is the semantic version of a chart for that of its image: the release's, and between releases one that
// sorts after the last and before the next. Where no release came before, a commit goes behind that of the source.
func chartVersion(source, image string) string {
	m := described.FindStringSubmatch(image)
	if m == nil {
		return source + "-0.g" + image
	}
	tag, err := semver.StrictNewVersion(strings.TrimPrefix(m[1], "v"))
	if err != nil {
		return source + "-0.g" + image
	}
	if m[2] == "" && m[4] == "" {
		return tag.String()
	}
	since := fmt.Sprintf("%s.%s%s", cmp.Or(m[2], "0"), cmp.Or(m[3], "g0"), m[4])
	if tag.Prerelease() != "" {
		return fmt.Sprintf("%d.%d.%d-%s.%s", tag.Major(), tag.Minor(), tag.Patch(), tag.Prerelease(), since)
	}
	return tag.IncPatch().String() + "-0." + since
}

// stamp gives a chart the version of its image and one date.
func stamp(c *chart.Chart, version string, made time.Time) {
	c.Metadata.AppVersion = version
	c.Metadata.Version = chartVersion(c.Metadata.Version, version)
	c.ModTime, c.SchemaModTime = made, made
	for _, files := range [][]*common.File{c.Raw, c.Templates, c.Files} {
		for _, f := range files {
			f.ModTime = made
		}
	}
}
