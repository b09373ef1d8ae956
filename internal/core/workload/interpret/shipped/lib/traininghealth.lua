-- traininghealth is the health of a training job, by its conditions.
local function traininghealth(object)
  local status = dig(object, "status")
  local function is(kind)
    return condition(status, kind).status == "True"
  end
  if is("Failed") then
    return "Degraded"
  end
  if is("Succeeded") then
    return "Healthy"
  end
  if dig(object, "spec", "runPolicy", "suspend") == true or is("Suspended") then
    return "Suspended"
  end
  if is("Running") and not is("Restarting") then
    return "Healthy"
  end
  return "Progressing"
end
