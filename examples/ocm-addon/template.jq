# Makes an AddOnTemplate of the objects of an operator:
# kubectl create -f OBJECTS --dry-run=client -o json | jq -s --arg name NAME -f template.jq
map(select(.kind != "List")) + (map(select(.kind == "List")) | map(.items[]))
| map(del(.status, .metadata.creationTimestamp)
    # These stay when the add-on goes, because the workloads would go with them.
    | if .kind == "CustomResourceDefinition" or .kind == "Namespace"
      then .metadata.annotations["addon.open-cluster-management.io/deletion-orphan"] = "" else . end)
| {
    apiVersion: "addon.open-cluster-management.io/v1alpha1",
    kind: "AddOnTemplate",
    metadata: {name: $name},
    spec: {
      addonName: $name,
      agentSpec: {
        workload: {manifests: .},
        # The operator writes certificates into these. They stay as it has them.
        manifestConfigs: map({
            group: (.apiVersion | split("/") | if length > 1 then .[0] else "" end),
            resource: ({
              Secret: "secrets",
              MutatingWebhookConfiguration: "mutatingwebhookconfigurations",
              ValidatingWebhookConfiguration: "validatingwebhookconfigurations",
              CustomResourceDefinition: "customresourcedefinitions"
            })[.kind],
            namespace: (.metadata.namespace // ""),
            name: .metadata.name
          }
          | select(.resource)
          | {
              resourceIdentifier: .,
              updateStrategy: {type: (if .resource == "customresourcedefinitions" then "ServerSideApply" else "CreateOnly" end)}
            })
      }
    }
  }
