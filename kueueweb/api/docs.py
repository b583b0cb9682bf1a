"""A page to read and try the REST API: Swagger UI, from the wheel that holds it."""

from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.permissions import IsAuthenticated

# Our content security policy allows no inline script: the split view has its script at an address of its own.
api_docs = SpectacularSwaggerSplitView.as_view(
    url_name="schema", permission_classes=[IsAuthenticated], title="kueueweb REST API"
)
