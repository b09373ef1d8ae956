-- toolkithealth is the health of an object of the GitOps Toolkit. A failure that its controller waits out, for a source or
-- for another release, is on its way; any other Ready=False is a failure, Stalled is one for good.
local function toolkithealth(object)
  if dig(object, "spec", "suspend") == true then
    return "Suspended"
  end
  local status = dig(object, "status")
  local ready, stalled = condition(status, "Ready"), condition(status, "Stalled")
  if not fresh(object) or (tonumber(ready.observedGeneration) or math.huge) < amount(object, "metadata", "generation") then
    return "Progressing"
  end
  if stalled.status == "True" then
    return "Degraded"
  end
  if ready.status == "True" then
    return "Healthy"
  end
  local waits = {
    DependencyNotReady = true, SourceNotReady = true, ArtifactFailed = true, Progressing = true, ProgressingWithRetry = true,
    ReconciliationSuspended = true,
  }
  if ready.status == "False" and not waits[ready.reason] then
    return "Degraded"
  end
  return "Progressing"
end
