{{- define "ceph-tuner.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* A Service begins with a letter and has no dot; other objects and releases may. */ -}}
{{- define "ceph-tuner.service" -}}
{{- $name := include "ceph-tuner.name" . | replace "." "-" }}
{{- if regexMatch "^[0-9]" $name }}{{ printf "r%s" $name | trunc 63 | trimSuffix "-" }}{{ else }}{{ $name }}{{ end }}
{{- end }}

{{- define "ceph-tuner.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "ceph-tuner.labels" -}}
{{ include "ceph-tuner.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "ceph-tuner.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
