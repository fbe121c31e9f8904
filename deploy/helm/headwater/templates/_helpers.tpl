{{- define "headwater.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "headwater.selector" -}}
app.kubernetes.io/name: headwater
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "headwater.labels" -}}
{{ include "headwater.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "headwater.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "headwater.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "headwater.containerSecurity" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities:
  drop: [ALL]
{{- end }}

{{/* Zones first, then nodes, so that one of them takes at most one replica more than another. */}}
{{- define "headwater.spread" -}}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "headwater.selector" $ | nindent 6 }}
{{- end }}
{{- end }}

{{/* A server whose disk tier or index cache is being read is not restarted: the startup probe allows two minutes.
With an admin port, the main port of an edge forwards these paths to the origins, and that of an origin may need a
certificate. */}}
{{- define "headwater.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 2
  failureThreshold: 60
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 2
  failureThreshold: 2
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{/* The image has no shell: the kubelet itself sleeps. */}}
{{- define "headwater.lifecycle" -}}
preStop:
  sleep:
    seconds: {{ .Values.preStopSeconds }}
{{- end }}

{{- define "headwater.resources" -}}
requests:
  cpu: {{ .cpu | quote }}
  memory: {{ .memory }}
  ephemeral-storage: 64Mi
limits:
  # One worker runs per processor of this limit.
  cpu: {{ .cpu | quote }}
  memory: {{ .memory }}
  ephemeral-storage: {{ .ephemeral | default "256Mi" }}
{{- end }}

{{- define "headwater.toml" -}}
{{- range $name, $value := . }}
{{ $name }} = {{ $value | toJson }}
{{- end }}
{{- end }}

{{/* The port of metrics and probes. */}}
{{- define "headwater.metricsPort" -}}
{{ ternary "admin" "http" (not (empty .Values.admin.tokenSecret)) }}
{{- end }}

{{- define "headwater.ports" -}}
- {name: http, containerPort: 8080}
{{- if .Values.admin.tokenSecret }}
- {name: admin, containerPort: 9090}
{{- end }}
{{- end }}

{{- define "headwater.adminToml" -}}
{{- if .Values.admin.tokenSecret }}
admin = "0.0.0.0:9090"
admin-token-file = "/secrets/admin/token"
{{- else if .Values.mutualTls.enabled }}
{{- fail "mutualTls needs admin.tokenSecret: probes have no certificate, and use the admin port" }}
{{- else if .Values.edgeSecret.secret }}
{{- fail "edgeSecret needs admin.tokenSecret: origins refuse to send metrics to clients without the secret" }}
{{- end }}
{{- if .Values.edgeSecret.secret }}
edge-secret-file = "/secrets/edge-secret/secret"
{{- end }}
{{- end }}

{{/* The secrets of a component as a map from the folder's name: its own, and those that values name. */}}
{{- define "headwater.secrets" -}}
{{- $known := dict "admin" .root.Values.admin.tokenSecret "edge-secret" .root.Values.edgeSecret.secret }}
{{- range $name, $secret := merge (dict) .files $known }}
{{- if $secret }}
{{ $name }}: {{ $secret }}
{{- end }}
{{- end }}
{{- end }}

{{/* The certificate of one side, and the authority of the other side. */}}
{{- define "headwater.mutualTlsVolume" -}}
{{- with .root.Values.mutualTls }}
{{- if .enabled }}
{{- $origin := required "mutualTls.originSecret is required" .originSecret }}
{{- $edge := required "mutualTls.edgeSecret is required" .edgeSecret }}
{{- $isOrigin := eq $.component "origin" }}
- name: mutual-tls
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ ternary $origin $edge $isOrigin }}
          items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
      - secret:
          name: {{ ternary $edge $origin $isOrigin }}
          items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- end }}
{{- end }}

{{- define "headwater.mutualTlsMount" -}}
{{- if .Values.mutualTls.enabled }}
- {name: mutual-tls, mountPath: /secrets/mutual-tls, readOnly: true}
{{- end }}
{{- end }}

{{- define "headwater.secretMounts" -}}
{{- range $name, $secret := . }}
- name: secret-{{ $name }}
  mountPath: /secrets/{{ $name }}
  readOnly: true
{{- end }}
{{- end }}

{{- define "headwater.secretVolumes" -}}
{{- range $name, $secret := . }}
- name: secret-{{ $name }}
  secret:
    secretName: {{ $secret }}
    defaultMode: 0440
{{- end }}
{{- end }}
