-- sparkrequirement is what the driver or an executor of a Spark application asks for.
local function sparkrequirement(object, pod)
  local needed = requirement(dig(pod, "template"), object) or { namespace = dig(object, "metadata", "namespace") }
  needed.resourceRequest = needed.resourceRequest or {}
  local cores = dig(pod, "coreRequest") or dig(pod, "cores") or 1
  needed.resourceRequest.cpu = tostring(cores)
  -- Memory without a unit is in MiB, and so is the overhead.
  local memory = mebibytes(dig(pod, "memory") or "1g", 1048576)
  if memory ~= nil then
    local kind, factor = dig(object, "spec", "type"), tonumber(dig(object, "spec", "memoryOverheadFactor"))
    if factor == nil then
      factor = 0.1
      if kind == "Python" or kind == "R" then
        factor = 0.4
      end
    end
    local overhead = mebibytes(dig(pod, "memoryOverhead"), 1048576) or math.max(memory * factor, 384)
    needed.resourceRequest.memory = string.format("%dMi", math.ceil(memory + overhead))
  end
  if dig(pod, "gpu", "name") ~= nil then
    needed.resourceRequest[pod.gpu.name] = tostring(amount(pod, "gpu", "quantity"))
  end
  local claim = needed.nodeClaim or {}
  claim.nodeSelector = dig(pod, "nodeSelector") or dig(object, "spec", "nodeSelector") or claim.nodeSelector
  claim.tolerations = dig(pod, "tolerations") or claim.tolerations
  claim.hardNodeAffinity = dig(pod, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution") or claim.hardNodeAffinity
  if #keys(claim) > 0 then
    needed.nodeClaim = claim
  end
  needed.priorityClassName = dig(pod, "priorityClassName") or dig(object, "spec", "batchSchedulerOptions", "priorityClassName") or needed.priorityClassName
  return needed
end
