-- secretsof adds the Secrets that a source of the GitOps Toolkit names to a list.
local function secretsof(list, object)
  local spec = dig(object, "spec")
  reference(list, object, "Secret", dig(spec, "secretRef", "name"))
  reference(list, object, "Secret", dig(spec, "certSecretRef", "name"))
  reference(list, object, "Secret", dig(spec, "proxySecretRef", "name"))
  reference(list, object, "Secret", dig(spec, "verify", "secretRef", "name"))
  reference(list, object, "ServiceAccount", dig(spec, "serviceAccountName"))
  return list
end
