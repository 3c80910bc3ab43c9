{{- define "whereabouts.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $joined := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $joined .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}
