"""The addresses of gpus."""

from django.urls import path

from gpus.api import operation_views, views

urlpatterns = [
    path("device-allocations/", views.DeviceAllocationListView.as_view()),
    path("devices/", views.DeviceListView.as_view()),
    path("devices/<str:uuid>/", operation_views.DeviceOperationView.as_view()),
    path("devices/<str:uuid>/samples/", operation_views.DeviceSamplesView.as_view()),
    path("device-usage/", operation_views.DeviceUsageView.as_view()),
    path("drift/", operation_views.DriftView.as_view()),
]
