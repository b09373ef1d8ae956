-- flinkpods are the kinds of pods of a Flink cluster: {name, replicas, requirement}. Unless told, as many task managers run as
-- the job's parallelism needs slots for.
local function flinkpods(object)
  local spec = dig(object, "spec")
  local function group(name, replicas, manager)
    local needed = { resourceRequest = {}, namespace = dig(object, "metadata", "namespace") }
    -- The manager's own template outranks the common one.
    local template = dig(manager, "podTemplate") or dig(spec, "podTemplate")
    local asked = requirement(template, object)
    if asked ~= nil then
      needed.nodeClaim = asked.nodeClaim
      needed.priorityClassName = asked.priorityClassName
    end
    local cpu, memory = tonumber(dig(manager, "resource", "cpu")), mebibytes(dig(manager, "resource", "memory"), 1)
    if cpu ~= nil then
      needed.resourceRequest.cpu = string.format("%dm", math.ceil(cpu * 1000))
    end
    if memory ~= nil then
      needed.resourceRequest.memory = string.format("%dMi", math.ceil(memory))
    end
    if dig(manager, "resource", "ephemeralStorage") ~= nil then
      needed.resourceRequest["ephemeral-storage"] = tostring(manager.resource.ephemeralStorage)
    end
    return { name = name, replicas = replicas, requirement = needed }
  end
  local workers = tonumber(dig(spec, "taskManager", "replicas"))
  if workers == nil then
    local slots = math.max(amount(spec, "flinkConfiguration", "taskmanager.numberOfTaskSlots"), 1)
    workers = math.ceil((tonumber(dig(spec, "job", "parallelism")) or 1) / slots)
  end
  return {
    group("jobmanager", tonumber(dig(spec, "jobManager", "replicas")) or 1, dig(spec, "jobManager")),
    group("taskmanager", workers, dig(spec, "taskManager")),
  }
end
