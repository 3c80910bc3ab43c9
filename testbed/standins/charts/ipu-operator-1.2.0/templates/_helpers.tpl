{{- define "ipu-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "ipu-operator.fullname" -}}
{{- $name := include "ipu-operator.name" . }}
{{- $joined := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $joined .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "ipu-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "ipu-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ipu-operator.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "ipu-operator.selectorLabels" . }}
{{- end }}

{{- define "ipu-operator.controller.serviceAccountName" -}}
{{- with .Values.controller.serviceAccount }}
{{- .name | default (.create | ternary (printf "%s-controller" (include "ipu-operator.fullname" $)) "default") }}
{{- end }}
{{- end }}

{{- define "ipu-operator.vipuProxy.serviceAccountName" -}}
{{- with .Values.vipuProxy.serviceAccount }}
{{- .name | default (.create | ternary (printf "%s-vipu-proxy" (include "ipu-operator.fullname" $)) "default") }}
{{- end }}
{{- end }}

{{/* The two webhooks' configurations; the argument is a list of the root context and the CA (or nothing). */}}
{{- define "ipu-operator.webhooks" -}}
{{- $root := index . 0 }}
{{- range tuple (tuple "Mutating" "mipujob" "mutate") (tuple "Validating" "vipujob" "validate") }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: {{ index . 0 }}WebhookConfiguration
metadata:
  name: {{ include "ipu-operator.fullname" $root }}-admission
  labels:
    app.kubernetes.io/component: admission-webhook
    {{- include "ipu-operator.labels" $root | nindent 4 }}
webhooks:
- name: {{ index . 1 }}.graphcore.ai
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: {{ $root.Values.admissionWebhooks.timeoutSeconds }}
  rules:
  - operations: [CREATE, UPDATE]
    apiGroups: [graphcore.ai]
    apiVersions: [v1alpha1]
    resources: [ipujobs]
    scope: "*"
  clientConfig:
    {{- with index $ 1 }}
    caBundle: {{ . | b64enc }}
    {{- end }}
    service:
      name: {{ include "ipu-operator.fullname" $root }}-webhook-svc
      namespace: {{ $root.Release.Namespace }}
      path: /{{ index . 2 }}-graphcore-ai-v1alpha1-ipujob
      port: {{ $root.Values.admissionWebhooks.service.servicePort }}
{{- end }}
{{- end }}
