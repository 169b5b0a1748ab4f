{{/* 5353 is where the name servers of OpenShift listen behind port 53 of their Service: a policy
sees the port of the pod. */}}
{{- define "forbear.egress.dns" -}}
- to:
    {{- toYaml .Values.networkPolicy.dns | nindent 4 }}
  ports:
    {{- range list 53 5353 }}
    - port: {{ . }}
      protocol: UDP
    - port: {{ . }}
      protocol: TCP
    {{- end }}
{{- end }}

{{- define "forbear.egress.to" -}}
- ports:
    - port: {{ .port }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* What webhooks may reach: public addresses, as forbear itself has it, and what
delivery.allowTargets names. A policy knows no address that another one holds (NAT64, 6to4):
those are left out as a whole. */}}
{{- define "forbear.egress.public" -}}
- to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except:
          - 0.0.0.0/8
          - 10.0.0.0/8
          - 100.64.0.0/10
          - 127.0.0.0/8
          - 168.63.129.16/32
          - 169.254.0.0/16
          - 172.16.0.0/12
          - 192.0.0.0/24
          - 192.0.2.0/24
          - 192.88.99.0/24
          - 192.168.0.0/16
          - 198.18.0.0/15
          - 198.51.100.0/24
          - 203.0.113.0/24
          - 224.0.0.0/4
          - 240.0.0.0/4
    - ipBlock:
        cidr: 2000::/3
        except:
          - 2001::/23
          - 2001:db8::/32
          - 2002::/16
          - 3fff::/20
    {{- range .allowTargets }}
    - ipBlock:
        cidr: {{ . | quote }}
    {{- end }}
{{- end }}
