"""`manifest-templates/`: the user's own templates of manifests."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.fields import Text
from accounts.api.own.own_object_views import OwnObjectListView, OwnObjectView
from accounts.models import ManifestTemplate
from accounts.models.manifest_template import MAX_MANIFEST
from accounts.services.own_objects import MANIFEST_TEMPLATES


class ManifestTemplateSerializer(serializers.ModelSerializer[ManifestTemplate]):
    """A manifest that you saved under a name. It is checked when it is submitted."""

    name = Text(max_length=60, help_text="The name of the template, unique among yours.")
    manifest = Text(max_length=MAX_MANIFEST, trim_whitespace=False, help_text="YAML or JSON.")

    class Meta:
        model = ManifestTemplate
        fields = ["id", "name", "manifest", "generation", "updated_at"]
        read_only_fields = ["generation", "updated_at"]


class ManifestTemplateListView(OwnObjectListView):
    """`manifest-templates/`."""

    objects: ClassVar = MANIFEST_TEMPLATES
    serializer_class = ManifestTemplateSerializer
    queryset = ManifestTemplate.objects.none()
    keyset = ("name", "id")

    @extend_schema(responses=ManifestTemplateSerializer(many=True), operation_id="manifest_templates_list")
    def get(self, request: Request) -> Response:
        """List your templates by name."""
        return self.page(self.get_queryset())

    @extend_schema(responses={201: ManifestTemplateSerializer}, operation_id="manifest_templates_create")
    def post(self, request: Request) -> Response:
        """Save a template under a new name."""
        return self.save()


class ManifestTemplateView(OwnObjectView):
    """`manifest-templates/{template_id}/`."""

    objects: ClassVar = MANIFEST_TEMPLATES
    serializer_class = ManifestTemplateSerializer
    queryset = ManifestTemplate.objects.none()

    @extend_schema(responses=ManifestTemplateSerializer, operation_id="manifest_templates_retrieve")
    def get(self, request: Request, template_id: int) -> Response:
        """Get one of your templates."""
        return self.read(template_id)

    @extend_schema(responses=ManifestTemplateSerializer, operation_id="manifest_templates_update")
    def patch(self, request: Request, template_id: int) -> Response:
        """Rename one of your templates, or change its manifest."""
        return self.change(request, template_id)

    @extend_schema(responses={204: None}, operation_id="manifest_templates_delete")
    def delete(self, request: Request, template_id: int) -> Response:
        """Delete one of your templates."""
        return self.remove(request, template_id)
