// Package leave previews what happens to the objects and replicas of a cluster when it leaves the hub.
package leave
