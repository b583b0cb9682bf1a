"""The addresses of the studio."""

from django.urls import path

from studio.api import accuracy_views, explanation_views, question_views

urlpatterns = [
    path("studio/accuracy/", accuracy_views.AccuracyView.as_view()),
    path("studio/questions/", question_views.QuestionListView.as_view()),
    path("studio/questions/<int:question_id>/", question_views.QuestionView.as_view()),
    path("studio/questions/<int:question_id>/apply/", question_views.PlanApplyView.as_view()),
    path("workloads/<str:namespace>/<str:name>/explanation/", explanation_views.RemediedExplanationView.as_view()),
]
