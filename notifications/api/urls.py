"""The addresses of notifications."""

from django.urls import path

from notifications.api import views

urlpatterns = [
    path("notifications/", views.NotificationListView.as_view()),
    path("notifications/status/", views.NotificationStatusView.as_view()),
    path("notifications/read/", views.ReadView.as_view()),
    path("notification-rules/", views.RuleListView.as_view()),
    path("notification-rules/<int:rule_id>/", views.RuleView.as_view()),
    path("notification-rules/<int:rule_id>/test/", views.RuleTestView.as_view()),
]
