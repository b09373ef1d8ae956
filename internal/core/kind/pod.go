package kind

var (
	pod         = Kind{GroupKind: groupKind(core, "Pod"), Pods: template()}
	podTemplate = Kind{GroupKind: groupKind(core, "PodTemplate"), Pods: template("template")}
)
