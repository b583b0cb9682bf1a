{{/* The chart renders the objects of deploy/kubernetes, and changes in them what the values say. */}}

{{/* Print the objects of a file: (dict "root" $ "file" "web.yaml" "names" LIST "but" LIST
     "targetNamespace" NAMESPACE). `names` are those to print (all without it) and `but` those to leave out, as KIND/NAME. */}}
{{- define "kueueweb.objects" -}}
{{- $root := .root -}}
{{- $text := $root.Files.Get (printf "kubernetes/%s" .file) -}}
{{- if not $text }}{{ fail (printf "The chart lacks kubernetes/%s, a link to deploy/kubernetes: take it from a package, or from a whole clone." .file) }}{{ end -}}
{{- $text = regexReplaceAll "namespace: kueueweb([,}\\s])" $text (printf "namespace: %q${1}" $root.Release.Namespace) -}}
{{- $names := .names -}}
{{- $but := .but | default list -}}
{{- $target := .targetNamespace -}}
{{- range regexSplit "(?m)^---$" $text -1 -}}
{{- $object := fromYaml . -}}
{{- if hasKey $object "Error" }}{{ fail $object.Error }}{{ end -}}
{{- if $object -}}
{{- $name := printf "%s/%s" $object.kind $object.metadata.name -}}
{{- if and (not (has $name $but)) (or (not $names) (has $name $names)) -}}
{{- if $target }}{{ $_ := set $object.metadata "namespace" $target }}{{ end }}
{{- include "kueueweb.patch" (dict "root" $root "object" $object) }}
---
{{ toYaml $object }}
{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Change an object in place; prints nothing. */}}
{{- define "kueueweb.patch" -}}
{{- $root := .root -}}
{{- $object := .object -}}
{{- if eq $object.kind "Deployment" -}}
{{- include "kueueweb.patchDeployment" . -}}
{{- else if eq "kueueweb-push-lease" $object.metadata.name -}}
{{- /* Installations in other namespaces look for it there. */ -}}
{{- $_ := set $object.metadata "namespace" "kueueweb" -}}
{{- else if hasSuffix "WebhookConfiguration" $object.kind -}}
{{- range $object.webhooks }}{{ range (default dict .namespaceSelector).matchExpressions -}}
{{- $_ := set . "values" (append (without .values "kueueweb") $root.Release.Namespace | sortAlpha) -}}
{{- end }}{{ end -}}
{{- else if and (eq $object.kind "Service") (eq $object.metadata.name "kueueweb") -}}
{{- $_ := set (index $object.spec.ports 0) "port" $root.Values.service.port -}}
{{- if ne $root.Values.service.type "ClusterIP" }}{{ $_ := set $object.spec "type" $root.Values.service.type }}{{ end -}}
{{- with $root.Values.service.annotations }}{{ $_ := set $object.metadata "annotations" . }}{{ end -}}
{{- else if and (eq $object.kind "NetworkPolicy") (eq $object.metadata.name "web-from-ingress-and-metrics") -}}
{{- range $i, $namespace := list $root.Values.networkPolicy.ingressNamespace $root.Values.metrics.prometheusNamespace -}}
{{- $_ := set (index (index $object.spec.ingress 0).from $i) "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" $namespace)) -}}
{{- end -}}
{{- else if and (eq $object.kind "NetworkPolicy") (eq $object.metadata.name "webhook-from-the-api-server") -}}
{{- $_ := set (index $object.spec.ingress 0) "from" (include "kueueweb.callers" $root | fromYamlArray) -}}
{{- else if eq $object.kind "PodDisruptionBudget" -}}
{{- $_ := set $object.spec "minAvailable" (index $root.Values $object.metadata.name).podDisruptionBudget.minAvailable -}}
{{- end -}}
{{- end -}}

{{- define "kueueweb.patchDeployment" -}}
{{- $root := .root -}}
{{- $object := .object -}}
{{- $values := $root.Values -}}
{{- $role := index $values $object.metadata.name -}}
{{- $pod := $object.spec.template.spec -}}
{{- if (default dict $role.autoscaling).enabled }}{{ $_ := unset $object.spec "replicas" -}}
{{- else if hasKey $role "replicas" }}{{ $_ := set $object.spec "replicas" (int $role.replicas) }}{{ end -}}
{{- $annotations := merge (dict "checksum/configuration" (include "kueueweb.checksum" $root)) (default dict $role.podAnnotations) $values.podAnnotations -}}
{{- $_ := set $object.spec.template.metadata "annotations" $annotations -}}
{{- range $name := list "nodeSelector" "tolerations" "affinity" "priorityClassName" -}}
{{- with (index $role $name) | default (index $values $name) }}{{ $_ := set $pod $name . }}{{ end -}}
{{- end -}}
{{- with $role.topologySpreadConstraints }}{{ $_ := set $pod "topologySpreadConstraints" . }}{{ end -}}
{{- with $values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- with $values.extraVolumes }}{{ $_ := set $pod "volumes" (concat $pod.volumes .) }}{{ end -}}
{{- range $container := concat (default list $pod.initContainers) $pod.containers -}}
{{- $_ := set $container "image" (include "kueueweb.image" $root) -}}
{{- with $values.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end -}}
{{- $_ := set $container "resources" $role.resources -}}
{{- with concat (include "kueueweb.env" $root | fromYamlArray) $values.env (default list $role.env) -}}
{{- $_ := set $container "env" (concat (default list $container.env) .) -}}
{{- end -}}
{{- range $container.envFrom }}{{ with .secretRef }}{{ $_ := set . "name" (include "kueueweb.secret" $root) }}{{ end }}{{ end -}}
{{- with $values.extraVolumeMounts }}{{ $_ := set $container "volumeMounts" (concat $container.volumeMounts .) }}{{ end -}}
{{- if and (ne $root.Release.Namespace "kueueweb") (has $container.name (list "webhook" "visibility")) -}}
{{- $_ := set $container "command" (concat $container.command (list "--namespace" $root.Release.Namespace)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kueueweb.image" -}}
{{- $image := .Values.image -}}
{{- if and $image.tag (not $image.digest) }}{{ printf "%s:%s" $image.repository $image.tag -}}
{{- else }}{{ printf "%s@%s" $image.repository ($image.digest | default "sha256:not-written-yet") }}{{ end -}}
{{- end -}}

{{- define "kueueweb.secret" -}}
{{ .Values.existingSecret | default "kueueweb" }}
{{- end -}}

{{/* Variables from Secrets of others: they count more than those of ours. */}}
{{- define "kueueweb.env" -}}
{{- range $name, $server := dict "DATABASE_URL" .Values.database "REDIS_URL" .Values.redis }}
{{- with $server.existingSecret }}{{ if .name }}
- name: {{ $name }}
  valueFrom: {secretKeyRef: {name: {{ .name | quote }}, key: {{ .key | quote }}}}
{{- end }}{{ end }}
{{- end }}
{{- end -}}

{{/* Pods start again when what their variables come from changes. */}}
{{- define "kueueweb.checksum" -}}
{{- pick .Values "host" "config" "existingSecret" "database" "redis" "secretKey" "admissionCheckSigningKey" "postgresql" "valkey" | toJson | sha256sum -}}
{{- end -}}

{{/* A value of a Secret that is there, or a random text: (dict "root" $ "secret" NAME "key" KEY). */}}
{{- define "kueueweb.kept" -}}
{{- $found := lookup "v1" "Secret" .root.Release.Namespace .secret | default dict -}}
{{- with index ($found.data | default dict) .key }}{{ b64dec . }}{{ else }}{{ randAlphaNum 48 }}{{ end -}}
{{- end -}}

{{/* Where connections to the webhook come from. */}}
{{- define "kueueweb.callers" -}}
{{- with .Values.networkPolicy }}
{{- range .apiServerCIDRs }}
- ipBlock: {cidr: {{ . | quote }}}
{{- else }}
{{- $old := list }}{{ $new := list }}
{{- range .podCIDRs }}{{ if contains ":" . }}{{ $new = append $new . }}{{ else }}{{ $old = append $old . }}{{ end }}{{ end }}
- ipBlock: {cidr: 0.0.0.0/0, except: {{ toJson $old }}}
- ipBlock: {cidr: "::/0", except: {{ toJson $new }}}
{{- end }}
{{- end }}
{{- end -}}
