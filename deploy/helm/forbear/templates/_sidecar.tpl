{{/* The gateway as a sidecar, for charts that have this one as a dependency:

    spec:
      initContainers:
        {{- include "forbear.sidecar.container" .Subcharts.forbear | nindent 8 }}
      volumes:
        {{- include "forbear.sidecar.volumes" .Subcharts.forbear | nindent 8 }}

It is an init container that goes on: the pod's other containers start when it is ready,
and end before it does. There is no drain delay, since no one outside sends to it. */}}
{{- define "forbear.sidecar.container" -}}
{{- with .Values.sidecar -}}
- name: forbear
  image: {{ include "forbear.image" $ }}
  imagePullPolicy: {{ $.Values.image.pullPolicy }}
  restartPolicy: Always
  args:
    - serve
    - --config=/etc/forbear/policy/{{ .existingPolicy.key }}
    - --listen={{ .listen }}
    - --metrics=:{{ .metricsPort }}
    - --no-delivery
    - --log-format=json
    - --drain-delay=0s
    - --drain-timeout={{ .drain.timeoutSeconds }}s
    {{- with .extraArgs }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with include "forbear.env" . | trim }}
  env:
    {{- . | nindent 4 }}
  {{- end }}
  ports:
    - name: forbear-metrics
      containerPort: {{ .metricsPort }}
  {{- include "forbear.probes" (dict "startup" "/health/ready" "port" "forbear-metrics") | nindent 2 }}
  resources:
    {{- toYaml .resources | nindent 4 }}
  {{- include "forbear.restricted" $ | nindent 2 }}
  volumeMounts:
    - name: forbear-policy
      mountPath: /etc/forbear/policy
      readOnly: true
    {{- with .extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}

{{- define "forbear.sidecar.volumes" -}}
- name: forbear-policy
  configMap:
    name: {{ include "forbear.policy" (dict "root" . "component" "sidecar") }}
{{- end }}

{{/* The least terminationGracePeriodSeconds of a pod with the sidecar, beside what its own
containers take. */}}
{{- define "forbear.sidecar.grace" -}}
{{- include "forbear.grace" .Values.sidecar.drain -}}
{{- end }}
