package kind

// Each stands in a path for each element of a list.
const Each = "*"

// Pods are the paths of what describes pods in the objects of a kind.
type Pods struct {
	// Templates are the paths of pod templates. A Pod is its own template at the empty path.
	Templates [][]string
	// Specs are the paths of pod specs without a template, which are added to pods of others.
	Specs [][]string
	// Containers and InitContainers are the paths of other containers. InitContainers start first.
	Containers, InitContainers [][]string
	// Images are the paths of image names outside of containers.
	Images [][]string
}

// template is one pod template at a path.
func template(path ...string) Pods { return Pods{Templates: [][]string{path}} }

// specTemplate is a pod template at spec.template.
var specTemplate = template("spec", "template")
