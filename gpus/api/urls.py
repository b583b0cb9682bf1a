"""The addresses of gpus."""

from django.urls import path

from gpus.api import views

urlpatterns = [
    path("device-allocations/", views.DeviceAllocationListView.as_view()),
    path("devices/", views.DeviceListView.as_view()),
    path("devices/<str:uuid>/", views.DeviceView.as_view()),
    path("nodes/", views.NodeListView.as_view()),
    path("nodes/<str:name>/", views.NodeView.as_view()),
]
