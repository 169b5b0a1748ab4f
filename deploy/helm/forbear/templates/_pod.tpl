{{/* What every container of forbear has: who it runs as, and what it may not. */}}
{{- define "forbear.restricted" -}}
securityContext:
  runAsNonRoot: true
  {{- with .Values.pod.user }}
  runAsUser: {{ int64 . }}
  runAsGroup: {{ int64 . }}
  {{- end }}
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* The probes ask at the port of the metrics: it is there before the gateway's, and asks
for no certificate. The drain shows there as well. A start may take as long as a migration
does: while the process lives, it is waited for. */}}
{{- define "forbear.probes" -}}
startupProbe:
  httpGet:
    path: {{ .startup }}
    port: {{ .port }}
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet:
    path: /health/live
    port: {{ .port }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet:
    path: /health/ready
    port: {{ .port }}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 1
{{- end }}

{{/* The variables of a container: what is secret comes from Secrets. */}}
{{- define "forbear.env" -}}
{{- with include "forbear.gomemlimit" .resources }}
- name: GOMEMLIMIT
  value: {{ . | quote }}
{{- end }}
{{- if dig "fleetBudget" "existingSecret" "" . }}
{{ include "forbear.secretEnv" (dict "name" "FORBEAR_FLEET_BUDGET" "secret" .fleetBudget) }}
{{- end }}
{{- if dig "database" "existingSecret" "" . }}
{{ include "forbear.secretEnv" (dict "name" "FORBEAR_DATABASE" "secret" .database) }}
{{- end }}
{{- with .extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The pod around the one container: everything but the containers. */}}
{{- define "forbear.podSpec" -}}
{{- $pod := .root.Values.pod -}}
serviceAccountName: {{ $pod.serviceAccountName }}
automountServiceAccountToken: false
# A Service named forbear-... would add variables that begin like forbear's own.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  {{- with $pod.user }}
  fsGroup: {{ int64 . }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "forbear.spread" -}}
topologySpreadConstraints:
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "forbear.selector" $ | nindent 8 }}
{{- end }}
{{- end }}

{{- define "forbear.podMeta" -}}
labels:
  {{- include "forbear.labels" . | nindent 2 }}
  {{- with .root.Values.pod.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.pod.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
