"""The addresses of history."""

from django.urls import path

from history.api import checkpoint_views, price_views, report_views, series_views

urlpatterns = [
    path("checkpoints/", checkpoint_views.CheckpointsView.as_view()),
    path("checkpoints/figures/", checkpoint_views.FiguresView.as_view()),
    path("history/", series_views.HistoryView.as_view()),
    path("prices/", price_views.PricesView.as_view()),
    path("reports/<str:kind>/", report_views.ReportView.as_view()),
]
