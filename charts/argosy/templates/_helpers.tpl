{{- define "argosy.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "argosy.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "argosy.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "argosy.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | quote }}
app.kubernetes.io/component: hub
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "argosy.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion | replace "+" "-" }}{{ end }}
{{- end }}

{{- /* The configuration file: the user's settings under those that the chart depends on. */}}
{{- define "argosy.config" -}}
{{- $name := include "argosy.name" . }}
{{- $service := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.%s" $name .Release.Namespace .Values.clusterDomain) }}
{{- $own := dict "dataDir" "/var/lib/argosy/data" "bindAddress" "0.0.0.0" "port" 7443 "tlsSANs" (concat $service .Values.tlsSANs) }}
{{- with .Values.etcd.servers }}
{{- $etcd := dict "servers" . }}
{{- with $.Values.etcd.existingSecret }}
{{- $_ := set $etcd "caFile" "/etc/argosy/etcd/ca.crt" }}
{{- $_ := set $etcd "certFile" "/etc/argosy/etcd/tls.crt" }}
{{- $_ := set $etcd "keyFile" "/etc/argosy/etcd/tls.key" }}
{{- end }}
{{- $_ := set $own "etcd" $etcd }}
{{- end }}
{{- /* A container's log is its standard error. */}}
{{- toYaml (mergeOverwrite (dict "log" (dict "file" "-" "format" "json")) (deepCopy .Values.config) $own) }}
{{- end }}

{{- define "argosy.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
