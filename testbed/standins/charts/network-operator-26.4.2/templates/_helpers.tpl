{{- define "network-operator.name" -}}
{{- default .Chart.Name .Values.operator.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "network-operator.fullname" -}}
{{- $name := include "network-operator.name" . }}
{{- $joined := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $joined .Values.operator.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "network-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "network-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "network-operator.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "network-operator.selectorLabels" . }}
{{- end }}
