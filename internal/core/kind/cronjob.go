package kind

var cronJob = Kind{GroupKind: groupKind(batch, "CronJob"), Pods: template("spec", "jobTemplate", "spec", "template")}
