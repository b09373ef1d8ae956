package server

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// configPage is the page for users that has all fields.
const configPage = "../../docs/configuration.md"

// configRows returns the lines of the page's table: a field, its flag, its default and the flag's help.
func configRows(t *testing.T) []string {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", "~/.local/share") // as the page says it, whoever runs this
	c := DefaultConfig()
	flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
	c.BindFlags(flags)
	byAddress := map[uintptr]*pflag.Flag{}
	flags.VisitAll(func(f *pflag.Flag) {
		v := reflect.ValueOf(f.Value)
		address := v.Pointer()
		if v.Elem().Kind() == reflect.Struct { // pflag's slices point at theirs
			if field := v.Elem().FieldByName("value"); field.IsValid() && field.Kind() == reflect.Pointer {
				address = field.Pointer()
			}
		}
		byAddress[address] = f
	})
	var rows []string
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		text := ""
		switch value := v.Interface().(type) {
		case metav1.Duration:
			text = value.Duration.String()
		case resource.QuantityValue:
			text = value.String()
		case []string:
			if len(value) > 0 {
				text = `["` + strings.Join(value, `", "`) + `"]`
			}
		default:
			if v.Kind() == reflect.Struct {
				for i := range v.NumField() {
					name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
					if name == "" {
						t.Errorf("field %s of %s has no name in the file", v.Type().Field(i).Name, v.Type())
						continue
					}
					walk(v.Field(i), strings.TrimPrefix(path+"."+name, "."))
				}
				return
			}
			text = fmt.Sprint(value)
		}
		if text != "" {
			text = "`" + text + "`"
		}
		flag := byAddress[v.Addr().Pointer()]
		if flag == nil {
			t.Errorf("no flag sets %s", path)
			return
		}
		rows = append(rows, fmt.Sprintf("| `%s` | `--%s` | %s | %s |", path, flag.Name, text,
			strings.ReplaceAll(flag.Usage, "|", `\|`)))
	}
	walk(reflect.ValueOf(&c).Elem(), "")
	return rows
}

func TestExampleOfThePageIsAValidConfiguration(t *testing.T) {
	page, err := os.ReadFile(configPage)
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```yaml\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	file := filepath.Join(t.TempDir(), "hub.yaml")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	c := DefaultConfig()
	flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
	c.BindFlags(flags)
	if err := c.Load(file, flags); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil || c.DataDir != "/var/lib/argosy" || c.Backup.Keep != 48 {
		t.Errorf("the example is %+v, %v", c, err)
	}
}

func TestThePageOfTheConfigurationHasEveryFieldWithItsDefault(t *testing.T) {
	page, err := os.ReadFile(configPage)
	if err != nil {
		t.Fatal(err)
	}
	have := slices.DeleteFunc(strings.Split(string(page), "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "| `")
	})
	want := configRows(t)
	if len(want) < 50 {
		t.Errorf("there are %d fields", len(want))
	}
	if !slices.Equal(have, want) {
		t.Errorf("the table of docs/configuration.md is to be:\n%s", strings.Join(want, "\n"))
	}
}
