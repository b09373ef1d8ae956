package kind

// OpenKruise in a member creates an object per node.
var (
	_ = Register(Kind{GroupKind: groupKind(kruise, "NodeImage"), ClusterScoped: true, MemberMade: true})
	_ = Register(Kind{GroupKind: groupKind(kruise, "NodePodProbe"), ClusterScoped: true, MemberMade: true})
)
