{{- /* A version may have a + with what it was built of (Flux adds the digest of what it pulled), which no label takes, and no
       tag. `kubectl heddle doctor` takes 0.1.0-… for 0.1.0. */ -}}
{{- define "heddle.version" -}}
{{ .Chart.AppVersion | replace "+" "-" | trunc 63 | trimAll "-_." }}
{{- end }}

{{- define "heddle.labels" -}}
app.kubernetes.io/name: heddle
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ include "heddle.version" . | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimAll "-_." }}
{{- end }}

{{- /* What selects one component's pods; never changes between versions. */ -}}
{{- define "heddle.selector" -}}
app.kubernetes.io/name: heddle
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- define "heddle.image" -}}
{{- with .Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .Values.image.repository }}:{{ .Values.image.tag | default (include "heddle.version" .) }}
{{- end }}

{{- /* Vendors add to the version of their clusters (v1.36.3+k3s1, v1.36.3-gke.100); upstream's images have none of it, and what
       comes before a release (v1.37.0-rc.1) is their own. */ -}}
{{- define "heddle.schedulerImage" -}}
{{- $registry := .Values.scheduler.image.registry | default .Values.image.registry | default "registry.k8s.io" }}
{{- trimSuffix "/" $registry }}/{{ .Values.scheduler.image.repository }}:{{ .Values.scheduler.image.tag | default (regexReplaceAll "^([^-+]*(-(alpha|beta|rc)[.][0-9]+)?).*$" .Capabilities.KubeVersion.Version "${1}") }}
{{- end }}

{{- /* "true" where the policies that gate pods are rendered, else nothing. A cluster's own list, which Argo CD passes on, too,
       names kinds, so it has v1/Pod; that of `helm template` names groups and versions, and says of a kind neither yes nor no. */ -}}
{{- define "heddle.mutates" -}}
{{- $served := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}
{{- $by_version := and (not (.Capabilities.APIVersions.Has "v1/Pod")) (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version) }}
{{- if or (eq .Values.mutatingPolicies "always") (and (eq .Values.mutatingPolicies "auto") (or $served $by_version)) -}}
true
{{- end }}
{{- end }}

{{- define "heddle.account" -}}
system:serviceaccount:{{ .Release.Namespace }}:heddle-{{ .component }}
{{- end }}

{{- /* Whose programs run, here or elsewhere: who observes needs no kube-scheduler, and so nobody who may bind and delete pods. */ -}}
{{- define "heddle.accounts" -}}
{{ ternary (list "nodeagent" "operator" "extender" "scheduler") (list "nodeagent" "operator" "extender") (eq .Values.mode "place") | toJson }}
{{- end }}

{{- /* CEL: does container `c` ask for a managed GPU resource? A quantity of zero is no request. */ -}}
{{- define "heddle.asksForGpu" -}}
has(c.resources) && has(c.resources.limits) && {{ .Values.managedResources | toJson }}.exists(r, r in c.resources.limits && quantity(c.resources.limits[r]).isGreaterThan(quantity('0')))
{{- end }}

{{- /* The namespaces in which pods are routed and gated. */ -}}
{{- define "heddle.scope" -}}
matchExpressions:
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: [kube-system, {{ .Release.Namespace }}]
{{- if eq .Values.scope "namespaces" }}
- key: heddle.dev/scope
  operator: In
  values: [enabled]
{{- end }}
{{- end }}

{{- /* Which pods admission takes in hand: those with GPUs, in Heddle's scope, that nothing else schedules. */ -}}
{{- define "heddle.routedPods" -}}
matchConstraints:
  namespaceSelector: {{- include "heddle.scope" . | nindent 4 }}
  resourceRules:
  - apiGroups: [""]
    apiVersions: [v1]
    operations: [CREATE]
    resources: [pods]
matchConditions:
- name: asks-for-a-gpu
  expression: >-
    object.spec.containers.exists(c, {{ include "heddle.asksForGpu" . }}) ||
    (has(object.spec.initContainers) && object.spec.initContainers.exists(c, {{ include "heddle.asksForGpu" . }}))
# Who names another scheduler means it.
- name: has-no-other-scheduler
  expression: "!has(object.spec.schedulerName) || object.spec.schedulerName in ['', 'default-scheduler', 'heddle']"
# Static pods and those that somebody bound by hand never meet a scheduler; a gate on them is refused.
- name: is-not-bound
  expression: "!has(object.spec.nodeName) || object.spec.nodeName == ''"
{{- end }}

{{- /* What every container of ours may not do. */ -}}
{{- define "heddle.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* What the kubelet would mount by itself, for one container of the pod instead of all. */ -}}
{{- define "heddle.projectedToken" -}}
defaultMode: 0440
sources:
- serviceAccountToken: {path: token, expirationSeconds: 3607}
- configMap:
    name: kube-root-ca.crt
    items: [{key: ca.crt, path: ca.crt}]
- downwardAPI:
    items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]
{{- end }}

{{- /* Whom every pod of ours but the agents runs as. */ -}}
{{- define "heddle.nobody" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- /* What is made when all of the release is gone, and leaves nothing where it succeeds. By weight. */ -}}
{{- define "heddle.uninstallHook" -}}
helm.sh/hook: post-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- define "heddle.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- /* What a pod of ours needs at the least: the API server, by ports and, where they are given, by addresses, and DNS. */ -}}
{{- define "heddle.egressToServer" -}}
- ports:
  {{- range .Values.networkPolicy.apiServer.ports }}
  - {protocol: TCP, port: {{ int . }}}
  {{- end }}
  {{- with .Values.networkPolicy.apiServer.cidrs }}
  to:
  {{- range . }}
  - ipBlock: {cidr: {{ . | quote }}}
  {{- end }}
  {{- end }}
{{ include "heddle.egressToDns" . }}
{{- end }}

{{- /* DNS, wherever it is answered: CoreDNS's pods, or a cache on the node. Some plugins look at the port of the Service, others
       at that of the pods behind it. */ -}}
{{- define "heddle.egressToDns" -}}
- ports:
  {{- range .Values.networkPolicy.dnsPorts }}
  - {protocol: UDP, port: {{ int . }}}
  - {protocol: TCP, port: {{ int . }}}
  {{- end }}
{{- end }}
