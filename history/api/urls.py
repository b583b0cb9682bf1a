"""The addresses of history."""

from django.urls import path

from history.api import series_views

urlpatterns = [
    path("history/", series_views.HistoryView.as_view()),
]
