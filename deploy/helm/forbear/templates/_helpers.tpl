{{/* The name of all objects of a release. 44 characters, and what the longest name adds, a
migration's Job of a version, are the 63 that a label may have. */}}
{{- define "forbear.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $release := replace "." "-" .Release.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 44 | trimSuffix "-" -}}
{{- else if contains $name $release -}}
{{- $release | trunc 44 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" $release $name | trunc 44 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* The name of a component's objects: the gateway has the plain one, which callers write. */}}
{{- define "forbear.component" -}}
{{- include "forbear.fullname" .root -}}{{- if ne .component "gateway" -}}-{{ .component }}{{- end -}}
{{- end }}

{{/* What pods are selected by. It never changes. */}}
{{- define "forbear.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- define "forbear.labels" -}}
{{ include "forbear.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | quote }}
{{- end }}

{{- define "forbear.image" -}}
{{- $i := .Values.image -}}
{{- if not $i.repository -}}
{{- fail "image.repository: no public registry has forbear's image yet: build it, push it to a registry of yours, and name that" -}}
{{- end -}}
{{- if $i.digest -}}{{ $i.repository }}@{{ $i.digest }}{{- else -}}{{ $i.repository }}:{{ default .Chart.AppVersion $i.tag }}{{- end -}}
{{- end }}

{{/* The ConfigMap that has a component's policy file. */}}
{{- define "forbear.policy" -}}
{{- default (printf "%s-policy" (include "forbear.component" .)) (index .root.Values .component).existingPolicy.configMap -}}
{{- end }}

{{/* The seconds from SIGTERM to SIGKILL: what the drain may take, the attempts of webhooks
under way, and some to write back and close. The one place where it is computed. */}}
{{- define "forbear.grace" -}}
{{- add (.delaySeconds | default 0) .timeoutSeconds (.attemptSeconds | default 0) 10 -}}
{{- end }}

{{/* Nine tenths of a memory limit in Mi or Gi for GOMEMLIMIT; nothing for other units. */}}
{{- define "forbear.gomemlimit" -}}
{{- $limit := toString (dig "limits" "memory" "" .) -}}
{{- if regexMatch "^[0-9]+Mi$" $limit -}}
{{- printf "%dMiB" (div (mul (trimSuffix "Mi" $limit | int) 9) 10) -}}
{{- else if regexMatch "^[0-9]+Gi$" $limit -}}
{{- printf "%dMiB" (div (mul (trimSuffix "Gi" $limit | int) 9216) 10) -}}
{{- end -}}
{{- end }}

{{/* A variable from a Secret. */}}
{{- define "forbear.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret.existingSecret }}
      key: {{ .secret.key }}
{{- end }}
