{{/* The flags that a Deployment's serve has, whatever it does. */}}
{{- define "forbear.args" -}}
- serve
- --config=/etc/forbear/policy/{{ .values.existingPolicy.key }}
- --listen=:8080
- --metrics=:9464
{{- if .root.Values.admin.token.existingSecret }}
- --admin=:8081
- --admin-token-file=/etc/forbear/admin/token
{{- else }}
- --admin=127.0.0.1:8081
{{- end }}
{{- if .root.Values.metrics.token.existingSecret }}
- --metrics-token-file=/etc/forbear/metrics/token
{{- end }}
- --log-format=json
- --drain-delay={{ .values.drain.delaySeconds }}s
- --drain-timeout={{ .values.drain.timeoutSeconds }}s
{{- end }}

{{- define "forbear.ports" -}}
- name: http
  containerPort: 8080
- name: metrics
  containerPort: 9464
{{- if .Values.admin.token.existingSecret }}
- name: admin
  containerPort: 8081
{{- end }}
{{- end }}

{{/* The policy is mounted as a folder: the kubelet renews no file that is mounted by subPath. */}}
{{- define "forbear.mounts" -}}
- name: policy
  mountPath: /etc/forbear/policy
  readOnly: true
{{- if .root.Values.admin.token.existingSecret }}
- name: admin
  mountPath: /etc/forbear/admin
  readOnly: true
{{- end }}
{{- if .root.Values.metrics.token.existingSecret }}
- name: metrics
  mountPath: /etc/forbear/metrics
  readOnly: true
{{- end }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A volume with one key of a Secret, as the file of a name. */}}
{{- define "forbear.secretVolume" -}}
- name: {{ .name }}
  secret:
    secretName: {{ .secret.existingSecret }}
    defaultMode: 0440
    items:
      - key: {{ .secret.key }}
        path: token
{{- end }}

{{- define "forbear.volumes" -}}
- name: policy
  configMap:
    name: {{ include "forbear.policy" . }}
{{- with .root.Values.admin.token }}{{ if .existingSecret }}
{{ include "forbear.secretVolume" (dict "name" "admin" "secret" .) }}
{{- end }}{{ end }}
{{- with .root.Values.metrics.token }}{{ if .existingSecret }}
{{ include "forbear.secretVolume" (dict "name" "metrics" "secret" .) }}
{{- end }}{{ end }}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What a Deployment has beside itself. */}}
{{- define "forbear.beside" -}}
{{- $name := include "forbear.component" . -}}
{{- if not .values.existingPolicy.configMap }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "forbear.policy" . }}
  labels:
    {{- include "forbear.labels" . | nindent 4 }}
data:
  {{- toYaml (dict .values.existingPolicy.key .values.policy) | nindent 2 }}
{{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels:
    {{- include "forbear.labels" . | nindent 4 }}
  {{- with .values.service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .values.service.type }}
  selector:
    {{- include "forbear.selector" . | nindent 4 }}
  ports:
    - name: http
      port: {{ .values.service.port }}
      targetPort: http
    - name: metrics
      port: 9464
      targetPort: metrics
{{- if .root.Values.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels:
    {{- include "forbear.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  # Pods that do not get ready, for a fault of the policy file say, keep no node from its drain.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "forbear.selector" . | nindent 6 }}
{{- end }}
{{- end }}
