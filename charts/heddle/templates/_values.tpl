{{- /* What a template reads first: values that `helm upgrade --reuse-values` did not bring, because the chart that is there
       was older, are those of values.yaml. (files/defaults.yaml is a link to it: a chart cannot read its own.) */ -}}
{{- define "heddle.defaults" -}}
{{- include "heddle.fill" (list .Values (.Files.Get "files/defaults.yaml" | fromYaml)) -}}
{{- end }}

{{- /* Not by sprig's merge, which takes a false or a 0 for a missing value. Maps whose keys are the user's own are taken as
       they are: what somebody took out of one by null stays out. */ -}}
{{- define "heddle.fill" -}}
{{- $given := index . 0 }}
{{- range $key, $default := index . 1 }}
{{- if not (hasKey $given $key) }}
{{- $_ := set $given $key (deepCopy $default) }}
{{- else if and (kindIs "map" $default) (kindIs "map" (get $given $key)) (not (has $key (list "resources" "nodeSelector" "labels" "annotations" "podLabels" "podAnnotations"))) }}
{{- include "heddle.fill" (list (get $given $key) $default) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Names of ours are the cluster's (policies, roles, a scheduler), so there is one Heddle. Without this Helm would name the
       first ClusterRole that another release has. */ -}}
{{- define "heddle.checkAlone" -}}
{{- with lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" "heddle-nodeagent" }}
{{- $notes := dig "metadata" "annotations" (dict) . }}
{{- $release := get $notes "meta.helm.sh/release-name" | default "heddle" }}
{{- $namespace := get $notes "meta.helm.sh/release-namespace" | default (dig "namespace" "" (first .subjects)) }}
{{- if or (ne $release $.Release.Name) (ne $namespace $.Release.Namespace) }}
{{- fail (printf "Heddle is in this cluster already, as release %s in namespace %s, and there can be one, since it takes the pods of all namespaces in hand: change it by `helm upgrade %s ... --namespace %s`, or take it away first by `helm uninstall %s --namespace %s`" $release $namespace $release $namespace $release $namespace) }}
{{- end }}
{{- end }}
{{- /* Asked of a cluster only: `helm template` and `helm lint` may be called with any. */ -}}
{{- if and (ne .Release.Namespace "heddle-system") (lookup "v1" "Namespace" "" "kube-system") }}
{{- fail (printf "Heddle works in the namespace heddle-system alone, where its daemons look for each other's Leases, and not in %s: helm install %s ... --namespace heddle-system --create-namespace" .Release.Namespace .Release.Name) }}
{{- end }}
{{- end }}

{{- /* What stands on every pod of ours: labels that select it, and what the values add. */ -}}
{{- define "heddle.podLabels" -}}
{{- include "heddle.selector" .component }}
{{- with .Values.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What every pod of ours says of itself: no token that a container did not ask for, where images come from, where it may
       run, and with `component` that two of them share no node where there is another. */ -}}
{{- define "heddle.pod" -}}
automountServiceAccountToken: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- /* The image is Linux's, the agents tolerate all taints, and each kubelet sets this label. */}}
nodeSelector: {{- merge (deepCopy (.place.nodeSelector | default dict)) (dict "kubernetes.io/os" "linux") | toYaml | nindent 2 }}
{{- with .place.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .component }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "heddle.selector" . | nindent 6 }}
{{- end }}
{{- end }}
