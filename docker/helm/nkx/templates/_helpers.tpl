{{- define "nkx.labels" -}}
app.kubernetes.io/name: nkx
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "nkx.name" -}}
{{ printf "%s-nkx" .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- define "nkx.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}
