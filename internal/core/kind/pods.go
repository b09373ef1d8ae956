package kind

// Each stands in a path for each element of a list.
const Each = "*"

// Pods are the paths of what describes pods in the objects of a kind.
type Pods struct {
	// Templates are the paths of pod templates. A Pod is its own template at the empty path.
	Templates [][]string
	// TemplateFields are fields that its pod templates have beside metadata and spec.
	TemplateFields []string
	// Specs are the paths of pod specs without a template, which are added to pods of others.
	Specs [][]string
	// Containers and InitContainers are the paths of other containers. InitContainers start first.
	Containers, InitContainers [][]string
	// Images are the paths of image names outside of containers.
	Images [][]string
	// Claims are the paths of templates of PersistentVolumeClaims, which members create with the pods.
	Claims [][]string
	// Owned is true if its objects own pods, Makers are the kinds of objects that it creates to own them.
	Owned  bool
	Makers []string
	// Label is the label with the object's name on its pods, for objects without a selector.
	Label string
	// Labels are the labels that the API server generates in the template and the selector.
	Labels []string
	// Ordinals is true if pods are numbered. InTurn is true if each is created after the one before it is ready, unless
	// spec.podManagementPolicy is Parallel.
	Ordinals, InTurn bool
	// Subsets is true if it creates a workload for each subset, and chooses itself which of them shrinks.
	Subsets bool
	// Injected are the fields of the spec that are injected into pods of others.
	Injected []string
}

// IsPod reports whether objects of the kind are pods.
func (p Pods) IsPod() bool { return len(p.Templates) == 1 && len(p.Templates[0]) == 0 }

// HaveOwners reports whether it is known which objects own the pods.
func (p Pods) HaveOwners() bool { return p.Owned || p.Makers != nil }

// specTemplate is a pod template at spec.template. The objects own the pods.
var specTemplate = Pods{Templates: [][]string{{"spec", "template"}}, Owned: true}

// madeBy is a pod template at a path. Objects of other kinds, which its controller creates, own the pods.
func madeBy(maker string, path ...string) Pods {
	return Pods{Templates: [][]string{path}, Makers: []string{maker}}
}

// numbered is a pod template of pods with ordinals and claims.
var numbered = Pods{Templates: specTemplate.Templates, Owned: true, Ordinals: true, InTurn: true,
	Claims: [][]string{{"spec", "volumeClaimTemplates"}}}
