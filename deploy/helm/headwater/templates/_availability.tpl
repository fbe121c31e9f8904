{{/* The disruption budget and the autoscaler of a component. */}}
{{- define "headwater.availability" -}}
{{- $name := printf "%s-%s" (include "headwater.fullname" .root) .component }}
{{- if or .values.autoscaling.enabled (gt (int .values.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "headwater.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "headwater.selector" . | nindent 6 }}
{{- end }}
{{- with .values.autoscaling }}
{{- if .enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  namespace: {{ $.root.Release.Namespace }}
  labels:
    {{- include "headwater.labels" $ | nindent 4 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: {{ $.kind }}, name: {{ $name }}}
  minReplicas: {{ .minReplicas }}
  maxReplicas: {{ .maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ .cpuPercent }}}
  # A new replica starts with empty caches, so that removing one is more expensive than keeping it.
  behavior:
    scaleDown: {stabilizationWindowSeconds: 900}
{{- end }}
{{- end }}
{{- end }}
